package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Renewals of a hold, on a state table of one cell. */
class HoldTest {
    /** What comes of the next check that holds: its answer, a refusal because it is repeated, or an error; it is done all the same. */
    private enum Answer { GIVEN, REPEATED, LOST, BROKEN }

    private static final byte[] FAMILY = Bytes.toBytes("s");
    private static final byte[] VALUE = Bytes.toBytes("value");
    private byte[] cell = Bytes.toBytes("taken");
    private Answer answer = Answer.GIVEN;

    private final Hold hold = new Hold(new Options(Map.of("table", "orders", "asOf", "1000", "hold", "true")), 1000) {
        @Override
        Table table() {
            return (Table) Proxy.newProxyInstance(HoldTest.class.getClassLoader(), new Class<?>[] {Table.class},
                    (proxy, method, arguments) -> switch (method.getName()) {
                        case "checkAndMutate" -> new CheckAndMutateResult(checked((CheckAndMutate) arguments[0]), null);
                        case "get" -> stands();
                        default -> null;
                    });
        }
    };

    private boolean checked(CheckAndMutate check) throws IOException {
        if (!Arrays.equals(cell, check.getValue())) {
            return false;
        }
        cell = CellUtil.cloneValue(((Put) check.getAction()).get(FAMILY, VALUE).get(0));
        switch (answer) {
            case LOST:
                throw new IOException("no answer");
            case BROKEN:
                throw new IllegalStateException("closed");
            default:
                return answer == Answer.GIVEN;
        }
    }

    private Result stands() {
        return cell == null ? Result.EMPTY_RESULT
                : Result.create(List.<Cell>of(new KeyValue(Bytes.toBytes("hold"), FAMILY, VALUE, 1, cell)));
    }

    private byte[] renewed(Answer next) throws InterruptedException {
        answer = next;
        Thread.sleep(2); // another expiry
        byte[] before = cell;
        hold.renew();
        assertNotEquals(Bytes.toString(before), Bytes.toString(cell), "the hold was not renewed");
        return cell;
    }

    /** A renewal of which no answer came, or the answer to its repetition, does not keep later ones from renewing. */
    @Test
    void isRenewedAfterLostAnswers() throws InterruptedException {
        hold.recorded = cell;
        for (Answer each : Answer.values()) {
            renewed(each);
            if (each == Answer.GIVEN || each == Answer.REPEATED) {
                assertArrayEquals(cell, hold.recorded);
            } else {
                hold.renew(); // is refused and learns what stands
            }
        }
        renewed(Answer.GIVEN);
    }

    /** A hold that was released by hand stays released. */
    @Test
    void staysReleased() {
        hold.recorded = cell;
        cell = null;
        hold.renew();
        hold.renew();
        assertArrayEquals(null, cell);
    }
}
