package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.hbase.client.Scan;

/** Where cells are read from: a live table, or one region of an HBase snapshot. */
interface CellStore extends Closeable {
    /** Opens one more scanner; several may be open at a time. */
    CellSource open(Scan scan) throws IOException;
}
