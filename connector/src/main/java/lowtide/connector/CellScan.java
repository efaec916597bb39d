package lowtide.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.types.StructType;

/** A read of the view {@code versions} or {@code cells}. It is planned once, when Spark first asks. */
final class CellScan implements Scan, Batch, SupportsReportPartitioning, SupportsRuntimeV2Filtering {
    private final Options options;
    private final Pushdown pushdown;
    private final StructType schema;
    /** Of the view {@code as_of}; else null. */
    private final AsOfRead read;
    private Piece[] pieces;
    private AsOf asOf;

    CellScan(Options options, Pushdown pushdown, StructType schema, AsOfRead read) {
        this.options = options;
        this.pushdown = pushdown;
        this.schema = schema;
        this.read = read;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return "lowtide " + options.view.label + " of " + options.named()
                + (options.snapshot != null ? " in HBase snapshot " + options.snapshot : "") + pushdown;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return options.tables == null ? pieces() : Bundle.of(Arrays.asList(pieces()), options.splitBytes / 8);
    }

    private synchronized Piece[] pieces() {
        if (pieces == null) {
            try {
                Planner planner = new Planner(options, pushdown);
                pieces = (read != null ? asOf(planner) : planner.pieces()).toArray(new Piece[0]);
            } catch (IOException e) {
                throw new UncheckedIOException("Cannot plan the read of " + options.named() + ": "
                        + e.getMessage(), e);
            }
        }
        return pieces;
    }

    /** What is known of the commits is read before the data, and before the regions are cut: see {@link AsOf}. */
    private List<Piece> asOf(Planner planner) throws IOException {
        asOf = read.asOf();
        return options.readsFiles ? planner.pieces(read.files()) : planner.pieces();
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        pieces();
        return new PieceReaderFactory(options, pushdown, schema, asOf, this);
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        // Else explain() would plan the partitions, and make the factory before runtime filters are there.
        return ColumnarSupportMode.UNSUPPORTED;
    }

    @Override
    public Partitioning outputPartitioning() {
        if (options.tables != null || !Arrays.asList(schema.fieldNames()).contains("region")) {
            return new UnknownPartitioning(0);
        }
        return new KeyGroupedPartitioning(new Expression[] {Expressions.identity("region")}, pieces().length);
    }

    @Override
    public NamedReference[] filterAttributes() {
        return Arrays.stream(schema.fieldNames())
                .filter(name -> name.equals("start_ts") || name.equals("timestamp"))
                .map(Expressions::column)
                .toArray(NamedReference[]::new);
    }

    /** Rows that a join would drop anyway are not shown; the partitions stay the same. */
    @Override
    public void filter(Predicate[] predicates) {
        for (Predicate predicate : predicates) {
            pushdown.take(predicate);
        }
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return new CustomMetric[] {new Metrics.CellsRead(), new Metrics.BytesRead()};
    }
}
