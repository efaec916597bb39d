package lowtide.workload;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * What transactions do, line by line as it happens, in a file that outlives the process.
 *
 * <p>Each line is handed to the operating system before the step it announces: a process that is killed leaves nothing in
 * the store that its log does not name. Each has the time by this machine's clock, {@code at} in ms.
 */
final class EventLog implements AutoCloseable {

    private static final Gson GSON = new Gson();

    private final OutputStream out;

    EventLog(String path) throws IOException {
        out = new FileOutputStream(path, true);
    }

    void write(JsonObject event) {
        event.addProperty("at", System.currentTimeMillis());
        byte[] line = (GSON.toJson(event) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (this) {
            try {
                out.write(line);
            } catch (IOException e) {
                throw new IllegalStateException("the event log cannot be written", e);
            }
        }
    }

    @Override
    public void close() throws IOException {
        out.close();
    }
}
