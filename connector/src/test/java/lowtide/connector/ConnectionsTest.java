package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.BufferedMutator;
import org.apache.hadoop.hbase.client.BufferedMutatorParams;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.TableBuilder;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.junit.jupiter.api.Test;

/** Which connection a task works by, without a store. */
class ConnectionsTest {
    private final UserGroupInformation user = UserGroupInformation.createRemoteUser("ann");

    private Connection get() throws Exception {
        Map<String, String> options = Map.of("hbase.client.connection.impl", Unconnected.class.getName());
        return user.doAs((PrivilegedExceptionAction<Connection>) () -> Connections.get(options));
    }

    private void give(String identifier) {
        byte[] bytes = identifier.getBytes(StandardCharsets.UTF_8);
        user.addToken(new Token<TokenIdentifier>(bytes, bytes, new Text("HBASE_AUTH_TOKEN"), new Text("a cluster")));
    }

    /** HBase's client shows each server the token that its connection began with, also when its time is over. */
    @Test
    void aTokenThatIsReplacedHasAConnectionOfItsOwn() throws Exception {
        give("the first");
        Connection first = get();
        assertSame(first, get(), "as long as the token is the same");
        give("the second");
        Connection second = get();
        assertNotSame(first, second, "a token was replaced");
        assertSame(second, get());
    }

    /** Whoever closed one is not given it again. */
    @Test
    void oneThatWasClosedIsOpenedAnew() throws Exception {
        give("for this test");
        Connection first = get();
        first.close();
        assertNotSame(first, get(), "it was closed");
    }

    /** What HBase's client makes here in the place of a connection: it can be closed, and nothing else. */
    static final class Unconnected implements Connection {
        private boolean closed;

        Unconnected(Configuration settings, ExecutorService pool, User user, Map<String, byte[]> attributes) {
        }

        @Override
        public void close() {
            closed = true;
        }

        @Override
        public boolean isClosed() {
            return closed;
        }

        @Override
        public boolean isAborted() {
            return false;
        }

        @Override
        public Configuration getConfiguration() {
            throw new UnsupportedOperationException();
        }

        @Override
        public BufferedMutator getBufferedMutator(TableName table) {
            throw new UnsupportedOperationException();
        }

        @Override
        public BufferedMutator getBufferedMutator(BufferedMutatorParams parameters) {
            throw new UnsupportedOperationException();
        }

        @Override
        public RegionLocator getRegionLocator(TableName table) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void clearRegionLocationCache() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Admin getAdmin() {
            throw new UnsupportedOperationException();
        }

        @Override
        public TableBuilder getTableBuilder(TableName table, ExecutorService pool) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void abort(String why, Throwable error) {
            throw new UnsupportedOperationException();
        }
    }
}
