package lowtide.connector;

import java.io.IOException;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Folders for the option {@code restoreDir}, beside HBase's root on its file system. */
final class ScratchFolders {
    private static final String SUFFIX = "-lowtide-scratch";
    private static final String UNIQUE = "[0-9a-f-]{36}";

    private ScratchFolders() {
    }

    /** Makes a folder; its name begins with the one given. */
    static String make(Configuration configuration, String name) throws IOException {
        if (!name.matches("[A-Za-z0-9._-]+")) {
            throw new IllegalArgumentException("Scratch folder name " + name
                    + " has other characters than letters, digits, dot, dash and underscore.");
        }
        Path folder = new Path(all(configuration), name + "-" + UUID.randomUUID());
        if (!folder.getFileSystem(configuration).mkdirs(folder)) {
            throw new IOException("Cannot make the scratch folder " + folder);
        }
        return folder.toString();
    }

    /** Removes a folder that {@link #make} made, and nothing else; no-op if it is gone. */
    static void drop(Configuration configuration, String path) throws IOException {
        Path folder = new Path(path);
        FileSystem files = folder.getFileSystem(configuration);
        Path scratch = all(configuration);
        if (!files.makeQualified(folder).getParent().equals(scratch)) {
            throw new IllegalArgumentException("Folder " + path + " is no scratch folder: those lie in " + scratch
                    + ".");
        }
        RestoredFiles.forget(files.makeQualified(folder), files);
        files.delete(folder, true);
        if (files.exists(scratch) && files.listStatus(scratch).length == 0) {
            files.delete(scratch, false);
        }
    }

    /**
     * Removes scratch folders whose name was given as {@code prefix} and twelve hexadecimal digits, and that nobody has
     * touched for {@code olderThanMillis}: a driver that was killed removes its own never.
     */
    static void sweep(Configuration configuration, String prefix, long olderThanMillis) throws IOException {
        sweep(configuration, Pattern.compile(Pattern.quote(prefix) + "[0-9a-f]{12}-" + UNIQUE), olderThanMillis);
    }

    /** The same of those whose name was given as the prefix, something, and what {@link UUID} makes. */
    static void sweepUnique(Configuration configuration, String prefix, long olderThanMillis) throws IOException {
        sweep(configuration, Pattern.compile(Pattern.quote(prefix) + ".*" + UNIQUE + "-" + UNIQUE), olderThanMillis);
    }

    private static void sweep(Configuration configuration, Pattern name, long olderThanMillis) throws IOException {
        Path scratch = all(configuration);
        FileSystem files = scratch.getFileSystem(configuration);
        if (!files.exists(scratch)) {
            return;
        }
        long limit = System.currentTimeMillis() - olderThanMillis;
        IOException failed = null;
        for (FileStatus folder : files.listStatus(scratch)) {
            long time = folder.getModificationTime(); // 0: a file system whose folders have none
            if (!folder.isDirectory() || time == 0 || time >= limit
                    || !name.matcher(folder.getPath().getName()).matches()) {
                continue;
            }
            try {
                drop(configuration, folder.getPath().toString());
            } catch (IOException e) {
                failed = e; // somebody else's, perhaps; the others go
            }
        }
        if (failed != null) {
            throw failed;
        }
    }

    /** The folder that they lie in. */
    private static Path all(Configuration configuration) throws IOException {
        return RestoredFiles.root(configuration).suffix(SUFFIX);
    }
}
