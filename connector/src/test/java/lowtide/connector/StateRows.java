package lowtide.connector;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/** As much of a connection, and of Lowtide's one table behind it, as {@link Records} reads; rows are one cell each. */
final class StateRows {
    private final Map<byte[], Map.Entry<String, String>> rows = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    final Connection connection = proxy(Connection.class);

    void put(String row, String column, String value) {
        rows.put(Bytes.toBytes(row), Map.entry(column, value));
    }

    private <T> T proxy(Class<T> type) {
        return type.cast(Proxy.newProxyInstance(StateRows.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getAdmin" -> proxy(Admin.class);
                    case "getTable" -> proxy(Table.class);
                    case "tableExists" -> true;
                    case "get" -> ((List<?>) arguments[0]).stream().map(get ->
                            found(((Get) get).getRow())).toArray(Result[]::new);
                    case "getScanner" -> scanner((Scan) arguments[0]);
                    default -> null;
                }));
    }

    private Result found(byte[] row) {
        Map.Entry<String, String> cell = rows.get(row);
        return cell == null ? Result.EMPTY_RESULT : Result.create(List.<Cell>of(new KeyValue(row, Records.FAMILY,
                Bytes.toBytes(cell.getKey()), 1, Bytes.toBytes(cell.getValue()))));
    }

    private ResultScanner scanner(Scan scan) {
        List<Result> found = new ArrayList<>();
        for (byte[] row : rows.keySet()) {
            int end = Arrays.compareUnsigned(row, scan.getStopRow());
            if (Arrays.compareUnsigned(row, scan.getStartRow()) >= 0
                    && (end < 0 || end == 0 && scan.includeStopRow())) {
                found.add(found(row));
            }
        }
        Iterator<Result> left = found.iterator();
        return (ResultScanner) Proxy.newProxyInstance(StateRows.class.getClassLoader(),
                new Class<?>[] {ResultScanner.class},
                (proxy, method, arguments) -> method.getName().equals("iterator") ? left : null);
    }
}
