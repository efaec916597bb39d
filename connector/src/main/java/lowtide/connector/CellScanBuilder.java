package lowtide.connector;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Takes filters and columns over for the views of cells. */
final class CellScanBuilder implements SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
    private final Options options;
    private final AsOfRead read;
    private final Pushdown pushdown;
    private final List<Predicate> pushed = new ArrayList<>();
    private StructType schema;

    CellScanBuilder(Options options, AsOfRead read) {
        this.options = options;
        this.read = read;
        this.pushdown = new Pushdown(options);
        this.schema = options.view.schema;
    }

    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
        List<Predicate> left = new ArrayList<>();
        for (Predicate predicate : predicates) {
            (pushdown.take(predicate) ? pushed : left).add(predicate);
        }
        return left.toArray(new Predicate[0]);
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed.toArray(new Predicate[0]);
    }

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
    }

    @Override
    public Scan build() {
        return new CellScan(options, pushdown, schema, read);
    }
}
