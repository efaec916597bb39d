package lowtide.connector;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The data source {@code lowtide}. The schema follows from the option {@code view}; nothing is asked of HBase yet. */
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
        return new LowtideTable(new Options(properties));
    }
}
