package lowtide.connector;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One view of one HBase table (or of the cluster), or the target of a write. */
final class LowtideTable implements SupportsRead, SupportsWrite {
    private final Options options;
    /** Of the view {@code as_of}; else null. Spark's plans refer to the table as long as they are referenced. */
    private final AsOfRead read;

    LowtideTable(Options options) {
        this.options = options;
        this.read = options.view == View.AS_OF ? new AsOfRead(options) : null;
    }

    @Override
    public String name() {
        return "lowtide " + options.view.label + (options.view.needsTable() ? " of " + options.named() : "");
    }

    @Override
    public StructType schema() {
        return options.view.schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
        // What is written are mutations, not rows of the view: the writer looks at the columns itself.
        return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE,
                TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) {
        return options.view.showsCells() ? new CellScanBuilder(options, read) : () -> new CatalogScan(options);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new MutationWrite.Builder(new Options(info.options().asCaseSensitiveMap()), info.schema());
    }
}
