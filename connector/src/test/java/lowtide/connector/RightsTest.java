package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** What it tells of a table whose families are tried, one by one. */
class RightsTest {
    /** Each is asked for alone: beside one that may be read, HBase would leave it out and refuse nothing. */
    @Test
    void aFamilyThatIsRefusedIsNamed() {
        ObjectNode lack = tried(Map.of("b", new AccessDeniedException("b"), "c", new AccessDeniedException("c")));
        assertEquals("{\"user\":\"ann\",\"table\":\"t\",\"right\":\"READ\",\"unknown\":\"\",\"families\":[\"b\",\"c\"]}",
                lack.toString());
        assertNull(tried(Map.of()));
    }

    /** A region that does not answer has not said that it may be read; a table that is gone has nothing to hide. */
    @Test
    void whatDoesNotAnswerIsNotKnown() {
        ObjectNode lack = tried(Map.of("a", new NotServingRegionException("moved\n\tat x")));
        assertEquals("moved", lack.get("unknown").asText());
        assertEquals("", tried(Map.of("a", new AccessDeniedException("a"), "b", new IOException("no")))
                .get("unknown").asText(), "one is refused, which is all there is to know");
        assertNull(tried(Map.of("a", new TableNotFoundException("t"))));
    }

    /** Of a table with the families a, b, c, of which some answer with an error. */
    private static ObjectNode tried(Map<String, Exception> errors) {
        Table table = proxy(Table.class, arguments -> {
            if (arguments == null) {
                return null; // it is closed
            }
            Get get = (Get) arguments[0];
            assertEquals(1, get.numFamilies());
            Exception error = errors.get(Bytes.toString(get.familySet().iterator().next()));
            if (error != null) {
                throw error;
            }
            return false;
        });
        return Rights.tryOne(proxy(Connection.class, arguments -> table), "ann", "t", List.of("a", "b", "c"));
    }

    private interface Answer {
        Object to(Object[] arguments) throws Exception;
    }

    private static <T> T proxy(Class<T> type, Answer answer) {
        return type.cast(Proxy.newProxyInstance(RightsTest.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> answer.to(arguments)));
    }
}
