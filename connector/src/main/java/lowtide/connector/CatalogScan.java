package lowtide.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.Size;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableState;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The views {@code tables}, {@code regions}, {@code snapshots} (HBase's): read by the driver, as they are then. */
final class CatalogScan implements LocalScan {
    private static final int ATTEMPTS = 3;
    private static final long PAUSE_MILLIS = 1000;

    private final Options options;

    /** All tables, and whether each is enabled, by name. */
    private record Listing(List<TableDescriptor> tables, Map<TableName, Boolean> enabled) {
    }

    CatalogScan(Options options) {
        this.options = options;
    }

    @Override
    public StructType readSchema() {
        return options.view.schema;
    }

    @Override
    public String description() {
        return "lowtide " + options.view.label;
    }

    @Override
    public InternalRow[] rows() {
        try {
            Connection connection = Connections.get(options.hbase);
            try (Admin admin = connection.getAdmin()) {
                List<InternalRow> rows;
                switch (options.view) {
                    case TABLES:
                        rows = tables(connection, admin);
                        break;
                    case REGIONS:
                        rows = regions(connection);
                        break;
                    case SNAPSHOTS:
                        rows = snapshots(admin);
                        break;
                    default:
                        throw new IllegalStateException(options.view.label);
                }
                return rows.toArray(new InternalRow[0]);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("Cannot read the view " + options.view.label + ": " + e.getMessage(), e);
        }
    }

    private static List<InternalRow> tables(Connection connection, Admin admin) throws IOException {
        Listing listing = listed(connection, admin);
        List<InternalRow> rows = new ArrayList<>();
        for (TableDescriptor table : listing.tables) {
            TableName name = table.getTableName();
            if (isSystem(name)) {
                continue;
            }
            // One that hbase:meta did not know yet was made since then.
            boolean enabled = listing.enabled.getOrDefault(name, true);
            Object attributes = map(table.getValues());
            Object coprocessors = new GenericArrayData(table.getCoprocessorDescriptors().stream()
                    .map(CoprocessorDescriptor::getClassName).map(UTF8String::fromString).toArray());
            for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
                rows.add(row(text(name.getNameAsString()), enabled, attributes, coprocessors,
                        text(family.getNameAsString()), map(family.getValues())));
            }
        }
        return rows;
    }

    /**
     * All tables; an error where some are kept from this user. HBase's listing leaves out, without a word, those on
     * which he has neither CREATE nor ADMIN; hbase:meta, which everybody may read, has the state of each.
     */
    private static Listing listed(Connection connection, Admin admin) throws IOException {
        for (int attempt = 1;; attempt++) {
            // First of all: what is made between the two is listed, and is not missed.
            Map<TableName, Boolean> enabled = known(connection);
            List<TableDescriptor> listed = admin.listTableDescriptors();
            Set<TableName> hidden = new TreeSet<>(enabled.keySet());
            listed.forEach(table -> hidden.remove(table.getTableName()));
            if (hidden.isEmpty()) {
                return new Listing(listed, enabled);
            }
            if (attempt == ATTEMPTS) {
                String user = User.getCurrent().getShortName();
                throw new IOException("HBase has tables that it does not list to the user " + user + ": " + hidden
                        + ". They may hold the proofs of commits. Give this user ADMIN on each of them, or globally (in"
                        + " HBase's shell: grant '" + user + "', 'A', '" + hidden.iterator().next()
                        + "'); where such a table is gone, remove its state from hbase:meta");
            }
            Pause.millis(PAUSE_MILLIS, "listing tables"); // A table that is being dropped goes from the listing first.
        }
    }

    /** All tables of which hbase:meta has a state, and whether that is "enabled"; a master of 2.5 cannot be asked. */
    private static Map<TableName, Boolean> known(Connection connection) throws IOException {
        Map<TableName, Boolean> enabled = new HashMap<>();
        try (Table meta = connection.getTable(TableName.META_TABLE_NAME);
                ResultScanner states = meta.getScanner(new Scan().addFamily(HConstants.TABLE_FAMILY))) {
            for (Result state : states) {
                TableName name = TableName.valueOf(state.getRow());
                if (!isSystem(name)) {
                    enabled.put(name, Tables.isInState(name, state, TableState.State.ENABLED));
                }
            }
        }
        return enabled;
    }

    private static boolean isSystem(TableName name) {
        return name.getNamespaceAsString().equals(NamespaceDescriptor.SYSTEM_NAMESPACE_NAME_STR);
    }

    private static Object map(Map<org.apache.hadoop.hbase.util.Bytes, org.apache.hadoop.hbase.util.Bytes> values) {
        Map<Object, Object> texts = new HashMap<>();
        values.forEach((key, value) -> texts.put(text(Bytes.toString(key.get(), key.getOffset(), key.getLength())),
                text(Bytes.toString(value.get(), value.getOffset(), value.getLength()))));
        return new ArrayBasedMapData(new GenericArrayData(texts.keySet().toArray()),
                new GenericArrayData(texts.values().toArray()));
    }

    private List<InternalRow> regions(Connection connection) throws IOException {
        List<TableName> names = options.tables != null
                ? options.tables.stream().map(Options.TableRead::name).toList() : List.of(options.tableName());
        // Before the regions: what comes back between the two counts as come back.
        Map<TableName, Long> stated = Tables.stated(connection, names);
        if (options.tables == null) {
            Tables.known(connection, names.get(0));
        } else { // one that is not there has no rows
            names = names.stream().filter(name -> stated.get(name) > 0).toList();
        }
        Tables.Served served = Tables.served(connection, names);
        Map<String, RegionMetrics> metrics = new HashMap<>();
        for (RegionMetrics one : served.metrics()) {
            metrics.put(RegionInfo.encodeRegionName(one.getRegionName()), one);
        }
        List<InternalRow> rows = new ArrayList<>();
        for (TableName name : names) {
            for (HRegionLocation location : served.locations().get(name)) {
                RegionInfo region = location.getRegion();
                RegionMetrics one = metrics.get(region.getEncodedName());
                rows.add(row(text(name.getNameAsString()), text(region.getEncodedName()), region.getStartKey(),
                        region.getEndKey(), region.getRegionId(),
                        location.getServerName() == null ? null : text(location.getServerName().toString()),
                        one == null ? null : (long) one.getStoreFileSize().get(Size.Unit.BYTE),
                        one == null ? null : (long) one.getMemStoreSize().get(Size.Unit.BYTE),
                        one == null ? null : one.getLastMajorCompactionTimestamp(), stated.get(name)));
            }
        }
        return rows;
    }

    private static List<InternalRow> snapshots(Admin admin) throws IOException {
        List<InternalRow> rows = new ArrayList<>();
        for (SnapshotDescription snapshot : admin.listSnapshots()) {
            rows.add(row(text(snapshot.getName()), text(snapshot.getTableNameAsString()), snapshot.getCreationTime()));
        }
        return rows;
    }

    private static InternalRow row(Object... values) {
        return new GenericInternalRow(values);
    }

    private static UTF8String text(String text) {
        return UTF8String.fromString(text);
    }
}
