package lowtide.store;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/**
 * A Kerberos key distribution centre on the loopback interface, for one store: {@code KeyCentre FOLDER PORT REALM NAME...}
 *
 * <p>Its keys are new with each start and live in memory alone; {@code FOLDER/keytabs/NAME.keytab} has that principal's,
 * with {@code /} as {@code -}, readable for its owner only. They are there before the port is open.
 */
public final class KeyCentre {

    private KeyCentre() {}

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        SimpleKdcServer centre = new SimpleKdcServer();
        // What it writes there by itself is not what clients are given: its file names localhost, and is removed at its end.
        centre.setWorkDir(Files.createDirectories(folder.resolve("work")).toFile());
        centre.setKdcRealm(args[2]);
        centre.setKdcHost("127.0.0.1");
        centre.setKdcTcpPort(Integer.parseInt(args[1]));
        centre.setAllowUdp(false);
        centre.init();
        Path keytabs = ownFolder(folder.resolve("keytabs"));
        for (int i = 3; i < args.length; i++) {
            Path keytab = keytabs.resolve(args[i].replace('/', '-') + ".keytab");
            Files.deleteIfExists(keytab); // of the start before; keys would be added to it
            centre.createPrincipal(args[i]);
            centre.exportPrincipal(args[i], keytab.toFile());
            Files.setPosixFilePermissions(keytab, PosixFilePermissions.fromString("rw-------"));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(centre), "stop"));
        centre.start();
    }

    /** Nobody else may look into it, so that no key is open to others before its file is closed to them. */
    private static Path ownFolder(Path folder) throws Exception {
        Files.createDirectories(folder);
        return Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    }

    private static void stop(SimpleKdcServer centre) {
        try {
            centre.stop();
        } catch (Exception e) {
            throw new IllegalStateException("The key distribution centre does not end in good order", e);
        }
    }
}
