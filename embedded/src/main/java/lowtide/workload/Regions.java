package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.exceptions.MergeRegionException;
import org.apache.hadoop.hbase.util.Bytes;

/** Regions: flushed, compacted, split, merged and moved. Every command returns when it is done. */
final class Regions {

    private static final int MERGE_SECONDS = 10;

    private final Store store;
    private final Admin admin;

    Regions(Store store) {
        this.store = store;
        this.admin = store.admin;
    }

    void register(Commands commands) {
        commands.add("regions", this::regions);
        commands.add("write_requests", this::writeRequests);
        commands.add("flush", this::flush);
        commands.add("compact", this::compact);
        commands.add("compactions", this::compactions);
        commands.add("split", this::split);
        commands.add("merge", this::merge);
        commands.add("move", this::move);
    }

    /** [encoded name, start key, end key, server, files] in key order. */
    private JsonElement regions(JsonObject request) throws Exception {
        JsonArray regions = new JsonArray();
        for (HRegionLocation location : locations(request)) {
            RegionInfo region = location.getRegion();
            regions.add(Json.array(
                    region.getEncodedName(),
                    region.getStartKey(),
                    region.getEndKey(),
                    location.getServerName(),
                    files(location)));
        }
        return regions;
    }

    private int files(HRegionLocation location) throws IOException {
        return admin.getRegionMetrics(location.getServerName(), location.getRegion().getTable()).stream()
                .filter(metrics -> Bytes.equals(metrics.getRegionName(), location.getRegion().getRegionName()))
                .mapToInt(metrics -> metrics.getStoreFileCount())
                .sum();
    }

    /** Write requests that the servers have counted since they opened the regions, by table. */
    private JsonElement writeRequests(JsonObject request) throws Exception {
        JsonObject counts = new JsonObject();
        for (TableName table : admin.listTableNames()) {
            long count = 0;
            for (ServerName server : admin.getRegionServers()) {
                for (RegionMetrics region : admin.getRegionMetrics(server, table)) {
                    count += region.getWriteRequestCount();
                }
            }
            counts.addProperty(table.getNameAsString(), count);
        }
        return counts;
    }

    private JsonElement flush(JsonObject request) throws Exception {
        admin.flush(name(request));
        return null;
    }

    /** Answers with the number of store files [before, after]; a minor compaction may find nothing worth its while. */
    private JsonElement compact(JsonObject request) throws Exception {
        TableName name = name(request);
        int before = files(request);
        if (request.get("major").getAsBoolean()) {
            admin.majorCompact(name);
        } else {
            admin.compact(name);
        }
        // The servers have chosen the files when the call returns: none in progress means that all are done.
        while (admin.getCompactionState(name) != CompactionState.NONE) {
            Thread.sleep(20);
        }
        return Json.array(before, files(request));
    }

    /** Whether servers compact at all, by themselves or when asked. What is under way when it is switched off is given up. */
    private JsonElement compactions(JsonObject request) throws Exception {
        admin.compactionSwitch(request.get("on").getAsBoolean(), List.of());
        return null;
    }

    private int files(JsonObject request) throws IOException {
        int files = 0;
        for (HRegionLocation location : locations(request)) {
            files += files(location);
        }
        return files;
    }

    private JsonElement split(JsonObject request) throws Exception {
        byte[] key = Json.bytes(request, "key");
        RegionInfo region = locate(request, key).getRegion();
        admin.splitRegionAsync(region.getRegionName(), key).get();
        return null;
    }

    /** Joins the region that holds the key with the one after it. */
    private JsonElement merge(JsonObject request) throws Exception {
        RegionInfo first = locate(request, Json.bytes(request, "key")).getRegion();
        if (first.getEndKey().length == 0) {
            throw new IllegalArgumentException("the region is the last of its table; name a key of one before it");
        }
        RegionInfo second = locate(request, first.getEndKey()).getRegion();
        byte[][] names = {first.getRegionName(), second.getRegionName()};
        // The files of a region just split refer to their parent's until they were compacted and the old ones put away.
        long deadline = System.nanoTime() + MERGE_SECONDS * 1_000_000_000L;
        while (true) {
            try {
                admin.mergeRegionsAsync(names, false).get();
                return null;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof MergeRegionException) || System.nanoTime() > deadline) {
                    throw e;
                }
                Thread.sleep(200);
            }
        }
    }

    /** To another server where there is one; else closed and opened again. Answers with the server. */
    private JsonElement move(JsonObject request) throws Exception {
        byte[] key = Json.bytes(request, "key");
        HRegionLocation from = locate(request, key);
        byte[] name = from.getRegion().getRegionName();
        Collection<ServerName> others = admin.getRegionServers().stream()
                .filter(server -> !server.equals(from.getServerName()))
                .collect(Collectors.toList());
        if (others.isEmpty()) {
            admin.unassign(name);
            admin.assign(name);
        } else {
            admin.move(from.getRegion().getEncodedNameAsBytes(), others.iterator().next());
        }
        return Json.element(locate(request, key).getServerName());
    }

    /** Of the regions themselves, without their replicas. */
    private List<HRegionLocation> locations(JsonObject request) throws IOException {
        try (RegionLocator locator = store.connection.getRegionLocator(name(request))) {
            locator.clearRegionLocationCache();
            return locator.getAllRegionLocations().stream()
                    .filter(location -> location.getRegion().getReplicaId() == RegionInfo.DEFAULT_REPLICA_ID)
                    .collect(Collectors.toList());
        }
    }

    private HRegionLocation locate(JsonObject request, byte[] key) throws IOException {
        try (RegionLocator locator = store.connection.getRegionLocator(name(request))) {
            return locator.getRegionLocation(key, true);
        }
    }

    private static TableName name(JsonObject request) {
        return TableName.valueOf(request.get("table").getAsString());
    }
}
