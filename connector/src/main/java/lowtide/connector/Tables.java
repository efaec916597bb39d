package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableState;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.util.Bytes;

/** What HBase tells about its tables: whether one is there, where its regions are, and when its state changed last. */
final class Tables {
    private static final long PAUSE_MILLIS = 500;
    /** The regions of so many tables are looked up in one scan of hbase:meta: else each is a call of its own. */
    private static final int MANY = 20;
    /** As hbase:meta has it of a region that a server has opened: the master's {@code RegionState.State}. */
    private static final String OPEN = "OPEN";

    private Tables() {
    }

    /** The table, which has to be there. */
    static TableDescriptor known(Connection connection, TableName name) throws IOException {
        try (Admin admin = connection.getAdmin()) {
            return admin.getDescriptor(name);
        } catch (TableNotFoundException e) {
            throw new IllegalArgumentException("Unknown table: " + name + ". Check the name and the namespace; the view"
                    + " tables lists what there is.", e);
        }
    }

    /** The table, which has to be there and enabled. */
    static TableDescriptor enabled(Connection connection, TableName name) throws IOException {
        return enabled(connection, List.of(name)).get(name);
    }

    /** The tables, which have to be there and enabled. */
    static Map<TableName, TableDescriptor> enabled(Connection connection, List<TableName> names) throws IOException {
        Map<TableName, TableDescriptor> found = new HashMap<>();
        try (Admin admin = connection.getAdmin()) {
            if (names.size() > 1) { // in one call, which leaves out what is not there
                admin.listTableDescriptors(names).forEach(table -> found.put(table.getTableName(), table));
            }
            Map<TableName, Result> states = states(connection, names);
            for (TableName name : names) {
                if (!found.containsKey(name)) {
                    found.put(name, known(connection, name));
                }
                if (isInState(name, states.get(name), TableState.State.DISABLED)) {
                    throw new IllegalArgumentException("Table " + name + " is disabled. Enable it (in the HBase shell:"
                            + " enable '" + name + "') and run again.");
                }
            }
        }
        return found;
    }

    /**
     * When the table was enabled or disabled last, by the clock of hbase:meta's server in ms; 0 where hbase:meta does
     * not say. An HBase snapshot is restored or cloned only into a table that is disabled or not there, and region ids
     * survive both.
     */
    static long stated(Connection connection, TableName name) throws IOException {
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME)) {
            return stamp(meta.get(state(name)));
        }
    }

    /** The same of several tables, in one call. */
    static Map<TableName, Long> stated(Connection connection, List<TableName> names) throws IOException {
        Map<TableName, Long> stated = new HashMap<>();
        states(connection, names).forEach((name, state) -> stated.put(name, stamp(state)));
        return stated;
    }

    /** What hbase:meta has of their states, in one call. */
    private static Map<TableName, Result> states(Connection connection, List<TableName> names) throws IOException {
        List<Get> asked = names.stream().map(Tables::state).toList();
        Map<TableName, Result> states = new HashMap<>();
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME)) {
            Result[] answers = meta.get(asked);
            for (int i = 0; i < answers.length; i++) {
                states.put(names.get(i), answers[i]);
            }
        }
        return states;
    }

    /** Whether a row of hbase:meta says that the table is in this state; one that says nothing does not. */
    static boolean isInState(TableName name, Result row, TableState.State state) throws IOException {
        try {
            byte[] value = row.getValue(HConstants.TABLE_FAMILY, HConstants.TABLE_STATE_QUALIFIER);
            return value != null && TableState.parseFrom(name, value).isInStates(state);
        } catch (DeserializationException e) {
            throw new IOException("The state of table " + name + " in hbase:meta cannot be read: " + e.getMessage(), e);
        }
    }

    private static Get state(TableName name) {
        return new Get(name.getName()).addColumn(HConstants.TABLE_FAMILY, HConstants.TABLE_STATE_QUALIFIER);
    }

    private static long stamp(Result answer) {
        Cell state = answer.getColumnLatestCell(HConstants.TABLE_FAMILY, HConstants.TABLE_STATE_QUALIFIER);
        return state == null ? 0 : state.getTimestamp();
    }

    /**
     * By encoded name of each region that the table has now: before which time its server cannot have read the table's
     * settings, by the clock of HBase's master in ms; 0 where it is not open, or hbase:meta does not say.
     *
     * <p>A server reads them once, when it opens a region. The master writes down which server is to open one before it
     * tells that server, and nothing more to that column once it is open: so it is older than what was read, while the
     * columns of the open region may be younger, by what the opening took.
     */
    static Map<String, Long> opened(Connection connection, TableName name) throws IOException {
        Map<String, Long> opened = new HashMap<>();
        Scan rows = regionsOf(name.getName(), name.getName()).addFamily(HConstants.CATALOG_FAMILY);
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME); ResultScanner regions = meta.getScanner(rows)) {
            for (Result region : regions) {
                RegionInfo info = RegionInfo.parseFromOrNull(
                        region.getValue(HConstants.CATALOG_FAMILY, HConstants.REGIONINFO_QUALIFIER));
                if (info == null || info.isSplitParent()) {
                    continue;
                }
                byte[] state = region.getValue(HConstants.CATALOG_FAMILY, HConstants.STATE_QUALIFIER);
                Cell sent = region.getColumnLatestCell(HConstants.CATALOG_FAMILY, HConstants.SERVERNAME_QUALIFIER);
                boolean open = state != null && Bytes.toString(state).equals(OPEN);
                opened.put(info.getEncodedName(), open && sent != null ? sent.getTimestamp() : 0);
            }
        }
        return opened;
    }

    /** A table's regions as they are now: no replicas, no parents of a split. */
    static List<RegionInfo> regions(Connection connection, TableName name) throws IOException {
        return locations(connection, name).stream().map(HRegionLocation::getRegion).toList();
    }

    /** Those regions, and where they are. */
    static List<HRegionLocation> locations(Connection connection, TableName name) throws IOException {
        List<HRegionLocation> locations = new ArrayList<>();
        try (RegionLocator locator = connection.getRegionLocator(name)) {
            for (HRegionLocation location : locator.getAllRegionLocations()) {
                RegionInfo info = location.getRegion();
                if (info.getReplicaId() == RegionInfo.DEFAULT_REPLICA_ID && !info.isSplitParent()) {
                    locations.add(location);
                }
            }
        }
        return locations;
    }

    /**
     * The same of many tables, by table, in one scan of hbase:meta, which goes past those between them; of one that is
     * not there, none.
     */
    private static Map<TableName, List<HRegionLocation>> locations(Connection connection, List<TableName> names)
            throws IOException {
        Map<TableName, List<HRegionLocation>> locations = new HashMap<>();
        names.forEach(name -> locations.put(name, new ArrayList<>()));
        byte[] first = names.stream().map(TableName::getName).min(Bytes.BYTES_COMPARATOR).orElseThrow();
        byte[] last = names.stream().map(TableName::getName).max(Bytes.BYTES_COMPARATOR).orElseThrow();
        Scan rows = regionsOf(first, last).addColumn(HConstants.CATALOG_FAMILY, HConstants.REGIONINFO_QUALIFIER)
                .addColumn(HConstants.CATALOG_FAMILY, HConstants.SERVER_QUALIFIER)
                .addColumn(HConstants.CATALOG_FAMILY, HConstants.STARTCODE_QUALIFIER);
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME); ResultScanner regions = meta.getScanner(rows)) {
            for (Result region : regions) {
                RegionInfo info = RegionInfo.parseFromOrNull(
                        region.getValue(HConstants.CATALOG_FAMILY, HConstants.REGIONINFO_QUALIFIER));
                if (info != null && !info.isSplitParent() && locations.containsKey(info.getTable())) {
                    locations.get(info.getTable()).add(new HRegionLocation(info, server(region)));
                }
            }
        }
        return locations;
    }

    /** The server that has a region, by its row in hbase:meta; null: none. */
    private static ServerName server(Result region) {
        byte[] address = region.getValue(HConstants.CATALOG_FAMILY, HConstants.SERVER_QUALIFIER);
        byte[] since = region.getValue(HConstants.CATALOG_FAMILY, HConstants.STARTCODE_QUALIFIER);
        return address == null || address.length == 0 || since == null ? null
                : ServerName.valueOf(Bytes.toString(address), Bytes.toLong(since));
    }

    /** The rows that hbase:meta has of the regions of these tables, and of those between them. */
    private static Scan regionsOf(byte[] first, byte[] last) {
        // They are sorted by table, key and id, not by their bytes: no prefix finds them.
        return new Scan().withStartRow(Bytes.add(first, Bytes.toBytes(",,")))
                .withStopRow(Bytes.add(last, Bytes.toBytes(" ,,")));
    }

    /**
     * Tables' regions as they are now, by table, and what their servers say of them; of one that is open nowhere,
     * nothing. Of some tables there may be metrics of others' regions, too.
     */
    record Served(Map<TableName, List<HRegionLocation>> locations, List<RegionMetrics> metrics) {
    }

    /**
     * Asks the servers of the tables' regions. One that has died is waited for, as HBase's client waits for it before a
     * read or a write: the regions are opened elsewhere once ZooKeeper misses it. Asked for metrics, that client tries
     * once.
     *
     * @throws IOException a server that has not answered within the operations' timeout, and whose regions have not
     *     moved
     */
    static Served served(Connection connection, List<TableName> names) throws IOException {
        return waitedFor(connection, "asking the servers of a table", () -> {
            if (names.size() >= MANY) {
                Map<TableName, List<HRegionLocation>> locations = locations(connection, names);
                return new Served(locations, metrics(connection, null, locations));
            }
            Map<TableName, List<HRegionLocation>> locations = new HashMap<>();
            for (TableName name : names) {
                try {
                    locations.put(name, locations(connection, name));
                } catch (TableNotFoundException e) {
                    if (names.size() == 1) {
                        throw e;
                    }
                    locations.put(name, List.of()); // it went; those that are there are told of
                }
            }
            return new Served(locations, metrics(connection, names.size() == 1 ? names.get(0) : null, locations));
        });
    }

    /** Something that HBase's client tries once. */
    interface Attempt<T> {
        T make() throws IOException;
    }

    /**
     * Tries again what fails because a server does not answer, for as long as an operation may take.
     *
     * @param what for the message of one that is interrupted
     * @throws IOException the last try's, or one that no other try would change
     */
    static <T> T waitedFor(Connection connection, String what, Attempt<T> attempt) throws IOException {
        int patience = connection.getConfiguration().getInt(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT,
                HConstants.DEFAULT_HBASE_CLIENT_OPERATION_TIMEOUT);
        long began = System.nanoTime();
        while (true) {
            try {
                return attempt.make();
            } catch (DoNotRetryIOException e) {
                throw e;
            } catch (IOException e) {
                if (TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) > patience) {
                    throw e;
                }
                Pause.millis(PAUSE_MILLIS, what);
            }
        }
    }

    /** @param only a table that is meant; null: all that the servers have, which is one answer of each */
    private static List<RegionMetrics> metrics(Connection connection, TableName only,
            Map<TableName, List<HRegionLocation>> locations) throws IOException {
        Set<ServerName> servers = new HashSet<>();
        locations.values().forEach(some -> some.forEach(location -> servers.add(location.getServerName())));
        servers.remove(null);
        List<RegionMetrics> all = new ArrayList<>();
        try (Admin admin = connection.getAdmin()) {
            for (ServerName server : servers) {
                all.addAll(only == null ? admin.getRegionMetrics(server) : admin.getRegionMetrics(server, only));
            }
        }
        return all;
    }
}
