package lowtide.workload;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;

/** A line in, a line out: {@code {"do": name, ...}} is answered with {@code {"answer": ...}} or {@code {"error": text}}. */
final class Commands {

    /** What one command does; null is answered as null. */
    interface Command {
        JsonElement run(JsonObject request) throws Exception;
    }

    private final Gson gson = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final Map<String, Command> known = new HashMap<>();

    void add(String name, Command command) {
        if (known.put(name, command) != null) {
            throw new IllegalStateException("two commands are called " + name);
        }
    }

    void serve(BufferedReader in, PrintStream out) throws IOException {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(gson.toJson(answer(line)));
            out.flush();
        }
    }

    private JsonObject answer(String line) {
        JsonObject answer = new JsonObject();
        try {
            JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            Command command = known.get(request.get("do").getAsString());
            if (command == null) {
                throw new IllegalArgumentException("there is no command " + request.get("do"));
            }
            JsonElement result = command.run(request);
            answer.add("answer", result == null ? JsonNull.INSTANCE : result);
        } catch (Exception e) {
            Throwable cause = e instanceof java.util.concurrent.ExecutionException && e.getCause() != null ? e.getCause() : e;
            answer.addProperty("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
        return answer;
    }
}
