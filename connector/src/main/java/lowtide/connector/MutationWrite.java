package lowtide.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A write of mutations. Mutations are sent while tasks run, not at the commit: a failed job has written a part. They
 * are safe to repeat, so a task may run again; only committed tasks are in the report.
 */
final class MutationWrite implements RequiresDistributionAndOrdering, BatchWrite {
    /** The columns in the order of {@link Mutation}. */
    static final StructType COLUMNS = new StructType()
            .add("op", DataTypes.StringType)
            .add("region", DataTypes.StringType)
            .add("row", DataTypes.BinaryType)
            .add("family", DataTypes.BinaryType)
            .add("qualifier", DataTypes.BinaryType)
            .add("timestamp", DataTypes.LongType)
            .add("value", DataTypes.BinaryType)
            .add("commit_ts", DataTypes.LongType)
            .add("guard_family", DataTypes.BinaryType)
            .add("guard_qualifier", DataTypes.BinaryType)
            .add("guard_timestamp", DataTypes.LongType);

    private final Options options;
    private final int[] positions;
    private final Durability durability;

    private MutationWrite(Options options, int[] positions, Durability durability) {
        this.options = options;
        this.positions = positions;
        this.durability = durability;
    }

    /** Checks options, columns and table before anything runs. */
    record Builder(Options options, StructType schema) implements WriteBuilder {
        @Override
        public Write build() {
            int[] positions = positions(schema);
            try {
                TableDescriptor table = Tables.enabled(Connections.get(options.hbase), options.tableName());
                return new MutationWrite(options, positions, Mutation.durability(table.getDurability()));
            } catch (IOException e) {
                throw new UncheckedIOException("Cannot write to table " + options.table + ": " + e.getMessage(), e);
            }
        }
    }

    /** Where each of {@link #COLUMNS} is in the rows, -1 where it is not. */
    static int[] positions(StructType schema) {
        Map<String, Integer> places = new TreeMap<>();
        for (int i = 0; i < schema.size(); i++) {
            StructField field = schema.fields()[i];
            DataType wanted = null;
            for (StructField known : COLUMNS.fields()) {
                wanted = known.name().equals(field.name()) ? known.dataType() : wanted;
            }
            if (wanted == null) {
                throw new IllegalArgumentException("Unknown column: " + field.name() + ". A write takes "
                        + String.join(", ", COLUMNS.fieldNames()) + ".");
            }
            if (!wanted.equals(field.dataType()) && !DataTypes.NullType.equals(field.dataType())) {
                throw new IllegalArgumentException("Column " + field.name() + " is " + field.dataType().sql()
                        + ". Cast it to " + wanted.sql() + ".");
            }
            places.put(field.name(), i);
        }
        for (String needed : new String[] {"op", "row"}) {
            if (!places.containsKey(needed)) {
                throw new IllegalArgumentException("Column " + needed + " is missing. A write takes "
                        + String.join(", ", COLUMNS.fieldNames()) + ".");
            }
        }
        int[] positions = new int[COLUMNS.size()];
        for (int i = 0; i < positions.length; i++) {
            positions[i] = places.getOrDefault(COLUMNS.fields()[i].name(), -1);
        }
        return positions;
    }

    @Override
    public String description() {
        return "lowtide mutations to " + options.table;
    }

    @Override
    public BatchWrite toBatch() {
        return this;
    }

    @Override
    public Distribution requiredDistribution() {
        return Distributions.unspecified();
    }

    @Override
    public SortOrder[] requiredOrdering() {
        // Neighbours go to one region together, and mutations of one row become one.
        return new SortOrder[] {Expressions.sort(Expressions.column("row"), SortDirection.ASCENDING)};
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        return new Factory(options, positions, durability);
    }

    /** Goes to the executors. */
    private record Factory(Options options, int[] positions, Durability durability) implements DataWriterFactory {
        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task) {
            try {
                return new MutationWriter(options, positions, durability);
            } catch (IOException e) {
                throw new UncheckedIOException("Cannot write to table " + options.table + ": " + e.getMessage(), e);
            }
        }
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        WriteReport whole = new WriteReport();
        for (WriterCommitMessage message : messages) {
            if (message != null) {
                whole.add((WriteReport) message);
            }
        }
        if (options.writeId != null) {
            WriteReport.keep(options.writeId, whole);
        }
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        // What was written stays: every mutation is right by itself.
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return new CustomMetric[] {
            new Metrics.MutationsWritten(), new Metrics.MutationsRefused(), new Metrics.BytesWritten()
        };
    }
}
