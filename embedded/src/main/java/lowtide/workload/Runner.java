package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.ArrayList;
import java.util.List;

/**
 * Carries out scripts: groups of overlapping transactions, the steps of each group in the order it gives.
 *
 * <p>Groups go to threads as they come; within a group one thread does everything, so that conflicts inside it are the same
 * in every run.
 */
final class Runner {

    private final Store store;
    private final AtomicBoolean stopping = new AtomicBoolean();
    private final Map<Attempt.Outcome, AtomicLong> counts = new EnumMap<>(Attempt.Outcome.class);
    private List<Future<?>> live = List.of();
    private EventLog liveLog;
    private final Map<String, Opened> opened = new HashMap<>();

    Runner(Store store) {
        this.store = store;
        for (Attempt.Outcome outcome : Attempt.Outcome.values()) {
            counts.put(outcome, new AtomicLong());
        }
    }

    void register(Commands commands) {
        commands.add("run", this::run);
        commands.add("live", this::live);
        commands.add("counts", request -> counts());
        commands.add("stop", request -> stop());
        commands.add("open", this::open);
        commands.add("turn", this::turn);
    }

    /** A group that is carried out one turn at a time, with whatever else happens between. */
    private record Opened(List<Attempt> attempts, JsonArray order, AtomicLong next, EventLog log) {}

    private JsonElement open(JsonObject request) throws Exception {
        JsonObject group = request.getAsJsonObject("group");
        EventLog log = new EventLog(request.get("log").getAsString());
        opened.put(
                request.get("name").getAsString(),
                new Opened(attempts(group, log, ""), group.getAsJsonArray("order"), new AtomicLong(), log));
        return null;
    }

    /** The group's next turn; answers whether there are more. */
    private JsonElement turn(JsonObject request) throws Exception {
        String name = request.get("name").getAsString();
        Opened group = opened.get(name);
        int turn = group.order().get((int) group.next().getAndIncrement()).getAsInt();
        group.attempts().get(turn).step();
        boolean more = group.next().get() < group.order().size();
        if (!more) {
            opened.remove(name);
            group.log().close();
        }
        return new JsonPrimitive(more);
    }

    /** Runs every group once; returns when all are over. */
    private JsonElement run(JsonObject request) throws Exception {
        ConcurrentLinkedQueue<JsonObject> groups = new ConcurrentLinkedQueue<>();
        request.getAsJsonArray("groups").forEach(group -> groups.add(group.getAsJsonObject()));
        try (EventLog log = new EventLog(request.get("log").getAsString())) {
            await(start(request.get("threads").getAsInt(), () -> {
                for (JsonObject group = groups.poll(); group != null; group = groups.poll()) {
                    perform(group, log, "");
                }
            }));
        }
        return counts();
    }

    /** Runs the groups round and round in the background until told to stop; returns at once. */
    private JsonElement live(JsonObject request) throws Exception {
        JsonArray groups = request.getAsJsonArray("groups");
        long pause = request.get("pause_ms").getAsLong();
        AtomicLong turn = new AtomicLong();
        liveLog = new EventLog(request.get("log").getAsString());
        live = start(request.get("threads").getAsInt(), () -> {
            while (!stopping.get()) {
                long mine = turn.getAndIncrement();
                String suffix = "#" + mine / groups.size();
                perform(groups.get((int) (mine % groups.size())).getAsJsonObject(), liveLog, suffix);
                Thread.sleep(pause);
            }
        });
        return counts();
    }

    private JsonElement stop() throws Exception {
        stopping.set(true);
        await(live);
        if (liveLog != null) {
            liveLog.close();
        }
        return counts();
    }

    private void perform(JsonObject group, EventLog log, String suffix) throws Exception {
        List<Attempt> attempts = attempts(group, log, suffix);
        for (JsonElement turn : group.getAsJsonArray("order")) {
            attempts.get(turn.getAsInt()).step();
        }
        for (Attempt attempt : attempts) {
            counts.get(attempt.outcome()).incrementAndGet();
        }
    }

    private List<Attempt> attempts(JsonObject group, EventLog log, String suffix) {
        List<Attempt> attempts = new ArrayList<>();
        for (JsonElement script : group.getAsJsonArray("transactions")) {
            attempts.add(new Attempt(store, log, script.getAsJsonObject(), suffix));
        }
        return attempts;
    }

    private interface Work {
        void run() throws Exception;
    }

    private static List<Future<?>> start(int threads, Work work) {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            running.add(pool.submit(() -> {
                work.run();
                return null;
            }));
        }
        pool.shutdown();
        return running;
    }

    private static void await(List<Future<?>> running) throws Exception {
        for (Future<?> each : running) {
            each.get();
        }
    }

    private JsonElement counts() {
        Map<String, Number> named = new HashMap<>();
        JsonObject answer = new JsonObject();
        counts.forEach((outcome, count) -> named.put(outcome.name().toLowerCase(Locale.ROOT).replace('_', ' '), count.get()));
        named.forEach(answer::addProperty);
        return answer;
    }
}
