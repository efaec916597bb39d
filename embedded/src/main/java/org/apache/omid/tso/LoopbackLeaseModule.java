package org.apache.omid.tso;

import com.google.inject.AbstractModule;
import com.google.inject.Provides;
import com.google.inject.Singleton;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.lang.reflect.Field;
import java.net.InetAddress;
import org.apache.omid.HBaseConfigModule;
import org.apache.omid.metrics.MetricsRegistry;

/**
 * The lease module of a single oracle whose port is open on the loopback interface only.
 *
 * <p>Omid's own channel handler binds every interface and has no setting for it. The lease is what opens the channel, and
 * the lease module is named in the oracle's configuration: so this is the one place to say where it listens. It lives in
 * Omid's package because the handler opens and closes its channel in package-private methods.
 */
public class LoopbackLeaseModule extends AbstractModule {

    @Override
    protected void configure() {
        install(new HBaseConfigModule(null, null));
    }

    @Provides
    @Singleton
    LeaseManagement lease(
            TSOServerConfig config, RequestProcessor requests, MetricsRegistry metrics, TSOStateManager state) {
        return new VoidLeaseManager(new LoopbackChannelHandler(config, requests, metrics), state);
    }

    private static final class LoopbackChannelHandler extends TSOChannelHandler {

        private final int port;

        LoopbackChannelHandler(TSOServerConfig config, RequestProcessor requests, MetricsRegistry metrics) {
            super(config, requests, metrics);
            port = config.getPort();
        }

        @Override
        void reconnect() {
            closeConnection();
            allChannels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
            listeningChannel =
                    bootstrap().bind(InetAddress.getLoopbackAddress(), port).syncUninterruptibly().channel();
            allChannels.add(listeningChannel);
        }

        private ServerBootstrap bootstrap() {
            try {
                Field field = TSOChannelHandler.class.getDeclaredField("bootstrap");
                field.setAccessible(true);
                return (ServerBootstrap) field.get(this);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("This version of Omid keeps its server bootstrap elsewhere", e);
            }
        }
    }
}
