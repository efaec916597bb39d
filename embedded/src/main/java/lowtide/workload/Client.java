package lowtide.workload;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * An Omid client driven from outside: commands on the standard input, answers on the standard output, one JSON object a line.
 *
 * <p>Ends when its input ends, so that it never outlives the program that started it.
 */
public final class Client {

    private Client() {}

    /** @param args the oracle's address, {@code host:port}, and the name of its commit table if that is not Omid's own */
    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // libraries that print must not disturb the answers
        Store store = args.length > 1 ? new Store(args[0], args[1]) : new Store(args[0]);
        Commands commands = new Commands();
        new Reader(store).register(commands);
        new CommitEntries(store).register(commands);
        new Tables(store).register(commands);
        new BulkLoad(store).register(commands);
        new Regions(store).register(commands);
        new Runner(store).register(commands);
        commands.serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)), answers);
        Runtime.getRuntime().halt(0);
    }
}
