package lowtide.connector;

import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * How executors ask the driver for their turn, where a run keeps to a rate: Spark's own way from a plug-in on an executor
 * to that of the driver. In {@code spark.plugins}; made by Spark, so public, without arguments. Where the executor is the
 * driver nothing need be asked, and it need not be there.
 */
public final class PacePlugin implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return new DriverPlugin() {
            @Override
            public Object receive(Object message) {
                return Gates.here((Gates.Passing) message);
            }
        };
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            public void init(PluginContext context, Map<String, String> given) {
                Gates.lead(context);
            }
        };
    }
}
