package lowtide.connector;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What one task reads: of {@code table} rows [start, stop) (empty: no bound) with timestamps [from, to) of the range
 * {@code id}.
 *
 * @param bytes what its files have of it, about
 * @param families the families to read; none: an empty piece
 * @param server where the region is, or null
 * @param region the region of an HBase snapshot to read it from, or null to ask the region servers
 */
record Piece(String table, String id, byte[] start, byte[] stop, long from, long to, byte[][] families, long bytes,
        String server, FileRegion region) implements InputPartition, HasPartitionKey {

    /**
     * A region of an HBase snapshot, restored into a folder.
     *
     * @param folder where the HBase snapshot's references are
     * @param descriptor the table's, as bytes
     * @param info the region's, as bytes
     * @param files how many it has
     */
    record FileRegion(String folder, byte[] descriptor, byte[] info, int files) implements Serializable {
    }

    @Override
    public InternalRow partitionKey() {
        return new GenericInternalRow(new Object[] {UTF8String.fromString(id)});
    }

    @Override
    public String[] preferredLocations() {
        return server == null ? new String[0] : new String[] {server};
    }
}
