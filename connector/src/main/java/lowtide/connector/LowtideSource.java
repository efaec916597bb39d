package lowtide.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source {@code lowtide}. The schema follows from the option {@code view}. That the table is there is seen
 * when the DataFrame is made, rather than when it is read.
 */
public final class LowtideSource implements TableProvider, DataSourceRegister {
    @Override
    public String shortName() {
        return "lowtide";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return new Options(options.asCaseSensitiveMap()).view.schema;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        Options options = new Options(properties);
        if (options.view.needsTable() && !options.readsFiles && options.tables == null) {
            try {
                Tables.known(Connections.get(options.hbase), options.tableName());
            } catch (IOException e) {
                throw new UncheckedIOException("Cannot reach table " + options.table + ": " + e.getMessage(), e);
            }
        }
        return new LowtideTable(options);
    }
}
