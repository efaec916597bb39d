package lowtide.connector;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What became of mutations, by region and operation. A task's report travels with its commit. */
final class WriteReport implements WriterCommitMessage {
    private static final long serialVersionUID = 1;
    private static final Map<String, WriteReport> KEPT = new HashMap<>();

    private record Key(String region, String op) implements Serializable {
    }

    private static final class Counts implements Serializable {
        private static final long serialVersionUID = 1;
        private long done;
        private long refused;
        private long failed;
        private long bytes;
        private String failure;
    }

    private final LinkedHashMap<Key, Counts> counts = new LinkedHashMap<>();

    private Counts of(String region, String op) {
        return counts.computeIfAbsent(new Key(region, op), key -> new Counts());
    }

    void done(Mutation mutation) {
        Counts of = of(mutation.region(), mutation.op());
        of.done++;
        of.bytes += mutation.bytes();
    }

    void refused(Mutation mutation) {
        of(mutation.region(), mutation.op()).refused++;
    }

    void failed(Mutation mutation, String failure) {
        Counts of = of(mutation.region(), mutation.op());
        of.failed++;
        if (of.failure == null) {
            of.failure = failure;
        }
    }

    void add(WriteReport other) {
        other.counts.forEach((key, counted) -> {
            Counts of = of(key.region, key.op);
            of.done += counted.done;
            of.refused += counted.refused;
            of.failed += counted.failed;
            of.bytes += counted.bytes;
            if (of.failure == null) {
                of.failure = counted.failure;
            }
        });
    }

    long done() {
        return counts.values().stream().mapToLong(of -> of.done).sum();
    }

    long refused() {
        return counts.values().stream().mapToLong(of -> of.refused).sum();
    }

    long bytes() {
        return counts.values().stream().mapToLong(of -> of.bytes).sum();
    }

    /** Keeps the report of a whole write for {@link #take}. */
    static void keep(String writeId, WriteReport report) {
        synchronized (KEPT) {
            KEPT.put(writeId, report);
        }
    }

    /** The kept report as JSON, once. */
    static String take(String writeId) {
        WriteReport report;
        synchronized (KEPT) {
            report = KEPT.remove(writeId);
        }
        if (report == null) {
            throw new IllegalArgumentException("There is no report of a write with writeId = " + writeId
                    + ": no such write was committed by this driver, or its report was taken before.");
        }
        return report.json();
    }

    private String json() {
        ArrayNode list = new ObjectMapper().createArrayNode();
        counts.forEach((key, of) -> {
            ObjectNode node = list.addObject();
            node.put("region", key.region);
            node.put("op", key.op);
            node.put("done", of.done);
            node.put("refused", of.refused);
            node.put("failed", of.failed);
            node.put("bytes", of.bytes);
            node.put("failure", of.failure);
        });
        return list.toString();
    }
}
