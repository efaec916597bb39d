package lowtide.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/** Goes to the executors with all that reading a piece needs. */
final class PieceReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;
    private final Options options;
    private final Pushdown pushdown;
    private final StructType schema;
    private final AsOf asOf;
    /** Referenced by the driver as long as anybody may ask for a reader: an RDD keeps the factory, not the read. */
    private final transient Object read;

    PieceReaderFactory(Options options, Pushdown pushdown, StructType schema, AsOf asOf, Object read) {
        this.options = options;
        this.pushdown = pushdown;
        this.schema = schema;
        this.asOf = asOf;
        this.read = read;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return partition instanceof Bundle bundle ? new BundleReader(bundle, this::reader) : reader((Piece) partition);
    }

    private PieceReader reader(Piece piece) {
        try {
            return new PieceReader(options, pushdown, schema, piece, asOf);
        } catch (IOException e) {
            throw new UncheckedIOException("Cannot read range " + piece.id() + " of table " + piece.table() + ": "
                    + e.getMessage(), e);
        }
    }
}
