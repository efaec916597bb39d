package lowtide.connector;

import java.util.Locale;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** What can be read, with the columns. */
enum View {
    VERSIONS(new StructType()
            .add("region", DataTypes.StringType)
            .add("row", DataTypes.BinaryType)
            .add("family", DataTypes.BinaryType)
            .add("qualifier", DataTypes.BinaryType)
            .add("timestamp", DataTypes.LongType)
            .add("start_ts", DataTypes.LongType)
            .add("commit_ts", DataTypes.LongType)
            .add("replaced_ts", DataTypes.LongType)
            .add("kind", DataTypes.StringType)
            .add("value", DataTypes.BinaryType)
            .add("problem", DataTypes.StringType)
            .add("cells_read", DataTypes.LongType)
            .add("bytes_read", DataTypes.LongType)
            .add("table", DataTypes.StringType)),
    CELLS(new StructType()
            .add("region", DataTypes.StringType)
            .add("row", DataTypes.BinaryType)
            .add("family", DataTypes.BinaryType)
            .add("qualifier", DataTypes.BinaryType)
            .add("timestamp", DataTypes.LongType)
            .add("value", DataTypes.BinaryType)
            .add("kind", DataTypes.StringType)
            .add("problem", DataTypes.StringType)
            .add("cells_read", DataTypes.LongType)
            .add("bytes_read", DataTypes.LongType)),
    AS_OF(new StructType()
            .add("region", DataTypes.StringType)
            .add("row", DataTypes.BinaryType)
            .add("family", DataTypes.BinaryType)
            .add("qualifier", DataTypes.BinaryType)
            .add("timestamp", DataTypes.LongType)
            .add("commit_ts", DataTypes.LongType)
            .add("value", DataTypes.BinaryType)),
    TABLES(new StructType()
            .add("table", DataTypes.StringType)
            .add("enabled", DataTypes.BooleanType)
            .add("attributes", texts())
            .add("coprocessors", DataTypes.createArrayType(DataTypes.StringType, false))
            .add("family", DataTypes.StringType)
            .add("family_attributes", texts())),
    REGIONS(new StructType()
            .add("table", DataTypes.StringType)
            .add("region", DataTypes.StringType)
            .add("start", DataTypes.BinaryType)
            .add("stop", DataTypes.BinaryType)
            .add("created", DataTypes.LongType)
            .add("server", DataTypes.StringType)
            .add("store_bytes", DataTypes.LongType)
            .add("memstore_bytes", DataTypes.LongType)
            .add("compacted", DataTypes.LongType)
            .add("stated", DataTypes.LongType)),
    SNAPSHOTS(new StructType()
            .add("snapshot", DataTypes.StringType)
            .add("table", DataTypes.StringType)
            .add("created", DataTypes.LongType));

    final StructType schema;
    final String label = name().toLowerCase(Locale.ROOT);

    View(StructType schema) {
        this.schema = schema;
    }

    /** Whether it shows cells of one table, rather than what the cluster knows about itself. */
    boolean showsCells() {
        return this == VERSIONS || this == CELLS || this == AS_OF;
    }

    /** Whether it is of one table, or of some. */
    boolean needsTable() {
        return showsCells() || this == REGIONS;
    }

    private static DataType texts() {
        return DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType, false);
    }
}
