package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.junit.jupiter.api.Test;

/** The facts that Python and Java share, as {@code contract/vectors.json} has them: the connector's reading of it. */
class ContractTest {
    private static final JsonNode VECTORS = read();

    private static JsonNode read() {
        try {
            return new ObjectMapper().readTree(Path.of("..", "contract", "vectors.json").toFile());
        } catch (IOException e) {
            throw new IllegalStateException("the vectors cannot be read from the connector's folder", e);
        }
    }

    private static Stream<JsonNode> each(String name) {
        assertTrue(VECTORS.path(name).size() > 0, name);
        return StreamSupport.stream(VECTORS.path(name).spliterator(), false);
    }

    private static byte[] bytes(JsonNode hex) {
        return Bytes.fromHex(hex.textValue());
    }

    /** A number, or what stands for none. */
    private static long number(JsonNode node) {
        return node.isNull() ? Omid.NONE : node.longValue();
    }

    private static Set<String> names(JsonNode list) {
        Set<String> names = new TreeSet<>();
        list.forEach(name -> names.add(name.textValue()));
        return names;
    }

    private static Options options(String... more) {
        List<String> given = new ArrayList<>(List.of("table", "orders"));
        given.addAll(Arrays.asList(more));
        Map<String, String> map = new HashMap<>();
        for (int i = 0; i < given.size(); i += 2) {
            map.put(given.get(i), given.get(i + 1));
        }
        return new Options(map);
    }

    /** What is agreed on has the number that Python knows, and another one when it changes. */
    @Test
    void number() throws Exception {
        JsonNode contract = VECTORS.path("contract");
        assertEquals(contract.path("number").intValue(), Contract.number());
        String surface = surface();
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(surface.getBytes(StandardCharsets.UTF_8));
        assertEquals(contract.path("surface").textValue(), Bytes.toHex(digest), () -> "Raise the contract's number,"
                + " for this is what jar and callers agree on by now:\n" + surface);
    }

    /** An executor that comes late has not been asked: by the options, which come with all work, it refuses. */
    @Test
    void theNumberTravelsWithTheOptions() {
        assertEquals(Contract.NUMBER, ObjectStreamClass.lookup(Options.class).getSerialVersionUID());
        Class<?> writes = Arrays.stream(MutationWrite.class.getDeclaredClasses())
                .filter(DataWriterFactory.class::isAssignableFrom).findAny().orElseThrow();
        for (Class<?> sent : List.of(PieceReaderFactory.class, writes)) {
            assertTrue(Arrays.stream(sent.getDeclaredFields()).anyMatch(f -> f.getType() == Options.class),
                    sent::getName);
        }
    }

    /** Options, columns, what can be called from Python, and the fields of all that goes from driver to executors. */
    private static String surface() throws Exception {
        Set<String> lines = new TreeSet<>();
        lines.add("options " + Options.NAMES);
        lines.add("mutations " + MutationWrite.COLUMNS.toDDL());
        for (View view : View.values()) {
            lines.add("view " + view + " " + view.schema.toDDL());
        }
        Path root = Path.of(Contract.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (Stream<Path> files = Files.list(root.resolve("lowtide").resolve("connector"))) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String name = file.getFileName().toString();
                if (name.endsWith(".class") && !name.equals("package-info.class")) {
                    add(lines, Class.forName("lowtide.connector." + name.substring(0, name.length() - 6)));
                }
            }
        }
        return String.join("\n", lines);
    }

    private static void add(Set<String> lines, Class<?> type) {
        if (type.isSynthetic()) {
            return;
        }
        if (type.isEnum()) {
            lines.add(type.getName() + " " + Arrays.toString(type.getEnumConstants()));
            return;
        }
        if (Serializable.class.isAssignableFrom(type)) {
            for (Field field : type.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !Modifier.isTransient(field.getModifiers())) {
                    lines.add(type.getName() + " " + field.getGenericType().getTypeName() + " " + field.getName());
                }
            }
        }
        if (Modifier.isPublic(type.getModifiers())) {
            for (Method method : type.getDeclaredMethods()) {
                int modifiers = method.getModifiers();
                if (Modifier.isPublic(modifiers) && Modifier.isStatic(modifiers)) {
                    lines.add(method.toGenericString());
                }
            }
        }
    }

    /** Tables and families are looked for under the names that the configuration ships. */
    @Test
    void names() {
        JsonNode names = VECTORS.path("names");
        Options options = options();
        assertEquals(names.path("state table").textValue(), options.stateTable);
        assertEquals(names.path("journal").textValue(), options.journalTable);
        assertEquals(names.path("commit table").textValue(), options.commitTable);
        assertEquals(names.path("commit family").textValue(), options.commitFamily);
        assertEquals(names.path("watermark family").textValue(), options.watermarkFamily);
    }

    /** Rows, families and qualifiers of Omid's own cells and of Lowtide's. */
    @Test
    void cells() {
        JsonNode cells = VECTORS.path("cells");
        assertArrayEquals(bytes(cells.path("low watermark row")), AsOf.LOW_WATERMARK_ROW);
        assertArrayEquals(bytes(cells.path("low watermark")), AsOf.LOW_WATERMARK);
        assertArrayEquals(bytes(cells.path("commit")), Omid.COMMIT);
        assertArrayEquals(bytes(cells.path("invalid")), Omid.INVALID);
        assertArrayEquals(bytes(cells.path("invalid value")), Omid.INVALID_VALUE);
        assertArrayEquals(bytes(cells.path("own invalid value")), Omid.OWN_INVALID_VALUE);
        assertArrayEquals(bytes(cells.path("decided")), Journal.DECIDED);
        assertArrayEquals(bytes(cells.path("state family")), Records.FAMILY);
        assertArrayEquals(bytes(cells.path("journal family")), Journal.FAMILY);
        assertArrayEquals(bytes(cells.path("journal's own row")), Journal.OWN_ROW);
    }

    /** A timestamp belongs to the transaction that began at the multiple of 50 at or below it. */
    @Test
    void starts() {
        each("starts").forEach(v -> assertEquals(number(v.path("start")), Omid.start(number(v.path("timestamp"))),
                v::toString));
    }

    /** Shadow qualifiers are made as Omid makes them, and known for what they are. */
    @Test
    void shadowQualifiers() {
        each("shadow qualifiers").forEach(v -> {
            String name = v.path("qualifier").textValue().repeat(v.path("times").asInt(1));
            String shadow = v.has("times") ? v.path("shadow").textValue() + name + v.path("after").textValue()
                    : v.path("shadow").textValue();
            byte[] made = Omid.shadowQualifier(Bytes.fromHex(name));
            assertEquals(shadow, Bytes.toHex(made));
            assertTrue(Omid.endsAsShadow(made, 0, made.length) && Omid.startsAsShadow(made, 0, made.length), shadow);
        });
    }

    /** What a cell's value makes of it. */
    @Test
    void tombstones() {
        each("tombstones").forEach(v -> {
            byte[] name = bytes(v.path("qualifier"));
            Cell cell = new KeyValue(Bytes.toBytes("r"), Bytes.toBytes("f"), name, 50, bytes(v.path("value")));
            assertEquals(v.path("kind").textValue(), Omid.kind(cell, name.length).label.toString());
        });
    }

    /** Numbers of eight bytes. */
    @Test
    void longs() {
        each("longs").forEach(v -> {
            assertEquals(v.path("bytes").textValue(), Bytes.toHex(Bytes.toBytes(number(v.path("number")))));
            assertEquals(number(v.path("number")), Bytes.toLong(bytes(v.path("bytes"))));
        });
    }

    /** Numbers of as many bytes as they need; what is none is refused. */
    @Test
    void varints() {
        each("varints").forEach(v -> assertEquals(number(v.path("number")), Omid.varint(bytes(v.path("bytes"))),
                v::toString));
    }

    /** The commit table's rows: who asks by the start finds no other. */
    @Test
    void commitKeys() {
        each("commit keys").forEach(v -> {
            long start = number(v.path("start"));
            assertEquals(start, Omid.startOfKey(bytes(v.path("row"))), v::toString);
            assertTrue(start == Omid.NONE || Arrays.equals(bytes(v.path("row")), Omid.commitKey(start)), v::toString);
        });
    }

    /** What a commit entry says. */
    @Test
    void commitEntries() {
        each("commit entries").forEach(v -> assertEquals(number(v.path("commit")),
                Omid.commit(number(v.path("start")), bytes(v.path("value"))), v::toString));
    }

    /**
     * Which clock the oracle has, by the configuration and by its low watermark; an error where they contradict each
     * other.
     */
    @Test
    void clocks() {
        assertEquals(VECTORS.path("world clock").path("least").longValue(), OracleClock.WORLD_MIN);
        assertEquals(VECTORS.path("world clock").path("units of a ms").longValue(), OracleClock.UNITS_PER_MILLI);
        each("clocks").forEach(v -> {
            OracleClock clock = options("clock", v.path("configured").textValue()).clock;
            long watermark = number(v.path("low watermark"));
            if (v.path("world").isNull()) {
                String text = assertThrows(IllegalArgumentException.class, () -> clock.isWorld(watermark)).getMessage();
                assertTrue(text.contains(v.path("configured").textValue()) && text.contains("" + watermark), text);
            } else {
                assertEquals(v.path("world").booleanValue(), clock.isWorld(watermark), v::toString);
            }
        });
    }

    /** Times and timestamps of the world's clock; a time that is told of a timestamp is not before it. */
    @Test
    void times() {
        each("times of the world clock").forEach(v ->
                assertEquals(number(v.path("timestamp")), Moment.ofWorld("", number(v.path("time")))));
        each("told times").forEach(v -> assertEquals(v.path("time").isNull() ? number(v.path("timestamp")) + ""
                : number(v.path("timestamp")) + " (" + Instant.ofEpochMilli(number(v.path("time"))) + ")",
                Moment.described(number(v.path("timestamp")))));
    }

    /** Times of an oracle that counts, by the samples of it. */
    @Test
    void samples() throws IOException {
        StateRows rows = new StateRows();
        VECTORS.path("samples").path("recorded").forEach(v ->
                rows.put(v.path("row").textValue(), "value", v.path("value").toString()));
        for (JsonNode v : VECTORS.path("samples").path("asked")) {
            if (v.path("timestamp").isNull()) {
                assertThrows(IllegalArgumentException.class,
                        () -> Moment.ofCounter(rows.connection, options("asOf", "then"), number(v.path("time"))));
            } else {
                assertEquals(number(v.path("timestamp")),
                        Moment.ofCounter(rows.connection, options("asOf", "then"), number(v.path("time"))),
                                v::toString);
            }
        }
    }

    /** Samples are found, and holds written, in the digits of the records, whatever those of the machine's locale are. */
    @Test
    void digitsOfNoPlace() throws IOException {
        Locale here = Locale.getDefault();
        try {
            for (String place : List.of("ar-EG", "fa-IR", "bn-BD")) {
                Locale.setDefault(Locale.forLanguageTag(place));
                samples();
                holds();
            }
        } finally {
            Locale.setDefault(here);
        }
    }

    /** Where a read of an age is counted. */
    @Test
    void agesOfReads() {
        each("ages of reads").forEach(v ->
                assertEquals(v.path("bucket").intValue(), AsOf.bucket(number(v.path("age"))), v::toString));
        JsonNode counted = VECTORS.path("counted read");
        assertEquals(counted.path("row").textValue(),
                Bytes.toString(Records.readsRow(counted.path("table").textValue())));
        assertEquals(counted.path("column").textValue(),
                Bytes.toString(Records.readsColumn(counted.path("bucket").intValue())));
    }

    /** A hold's row and its JSON, to the byte: it is let go of only where it is what was read. */
    @Test
    void holds() {
        each("holds").forEach(v -> {
            StringBuilder stored = new StringBuilder();
            v.path("stored").forEach(piece -> stored.append(piece.textValue()));
            String table = v.path("table").textValue();
            assertEquals(v.path("row").textValue(), Bytes.toString(Hold.row(table, v.path("id").textValue())));
            assertEquals(stored.toString(), Bytes.toString(Hold.record(table, v.path("id").textValue(),
                    number(v.path("timestamp")), v.path("owner").textValue(), number(v.path("taken")),
                            number(v.path("expires")))));
        });
    }

    /** How long a hold lasts, renewals included. */
    @Test
    void lifeOfAHold() {
        JsonNode life = VECTORS.path("life of a hold");
        assertEquals(life.path("renewed for").longValue(), Hold.LASTING_MILLIS);
        assertEquals(life.path("longest").longValue(), options().holdMaxAgeMillis);
        life.path("renewals").forEach(v -> {
            Options options = options("asOf", "1", "hold", "true", "holdMaxAgeMillis", v.path("longest").asText());
            assertEquals(number(v.path("expires")),
                    Hold.expires(number(v.path("now")), number(v.path("taken")), options.holdMaxAgeMillis),
                            v::toString);
        });
    }

    /** How long a mark that is announced and not applied keeps holds away. */
    @Test
    void announcedMarks() {
        assertEquals(VECTORS.path("announced marks").path("for").longValue(), Hold.ANNOUNCED_MILLIS);
        VECTORS.path("announced marks").path("holds").forEach(v -> {
            Hold.Announced announced = new Hold.Announced(number(v.path("announced")), number(v.path("applied")), 1);
            long now = 1 + number(v.path("ago"));
            long timestamp = number(v.path("timestamp"));
            assertEquals(v.path("overtakes").booleanValue(), announced.isInTheWayOf(timestamp)
                    && announced.isDead(timestamp, now), v::toString);
            boolean stands = !announced.isInTheWayOf(timestamp) || announced.isDead(timestamp, now);
            assertEquals(v.path("stands").booleanValue(), stands, v::toString);
        });
    }

    /** What is read of Lowtide's records, and that those of a newer Lowtide are refused. */
    @Test
    void state() throws IOException {
        JsonNode state = VECTORS.path("state");
        StateRows rows = new StateRows();
        state.path("rows").forEach(v -> rows.put(v.path("row").textValue(), v.path("column").textValue(),
                v.path("value").toString()));
        JsonNode read = state.path("read");
        for (Map.Entry<String, JsonNode> mark : read.path("mark").properties()) {
            assertEquals(mark.getValue().longValue(), Records.mark(rows.connection, options("table", mark.getKey())));
        }
        for (Map.Entry<String, JsonNode> any : read.path("mark of any table").properties()) {
            assertEquals(any.getValue().longValue(),
                    Records.markOfAny(rows.connection, options("table", any.getKey())), any::getKey);
        }
        assertEquals(read.path("numbered anew").longValue(), Records.numberedAnew(rows.connection, options()));
        for (Map.Entry<String, JsonNode> kind : read.path("kind").properties()) {
            JsonNode listed = Records.listed(rows.connection, options("table", kind.getKey()));
            assertEquals(kind.getValue().isNull() ? "" : kind.getValue().textValue(), listed.path("kind").asText());
            assertEquals(read.path("compactor").path(kind.getKey()).asBoolean(), listed.path("compactor").asBoolean());
            assertEquals(names(read.path("families").path(kind.getKey())), Records.families(listed));
        }
        rows.put("inventory", "value", state.path("inventory of format 1").toString());
        assertEquals("transactional", Records.listed(rows.connection, options()).path("kind").asText());
        JsonNode newer = state.path("newer");
        rows.put(newer.path("row").textValue(), newer.path("column").textValue(), newer.path("value").toString());
        String text = assertThrows(IllegalArgumentException.class, () ->
                Records.mark(rows.connection, options())).getMessage();
        assertTrue(text.contains("knows formats up to " + state.path("format").intValue()), text);
    }

    /** What a row of the journal says of its transaction. */
    @Test
    void journalRows() {
        each("journal rows").forEach(v -> {
            byte[] row = Omid.commitKey(number(v.path("start")));
            List<Cell> cells = new ArrayList<>();
            v.path("cells").forEach(cell ->
                    cells.add(new KeyValue(row, Journal.FAMILY, bytes(cell.path(0)), number(cell.path(2)),
                            bytes(cell.path(1)))));
            JsonNode says = v.path("says");
            OptionalLong wanted = says.isNull() ? OptionalLong.empty()
                    : OptionalLong.of(says.isTextual() ? Omid.NONE : number(says));
            assertEquals(wanted, Journal.outcome(Result.create(cells), number(v.path("since"))), v::toString);
        });
    }

    /** Whether the journal is known to have all its rows. */
    @Test
    void journals() {
        each("journals").forEach(v -> {
            JsonNode said = v.path("said").isNull() ? MissingNode.getInstance() : v.path("said");
            assertEquals(v.path("whole").booleanValue(),
                    Journal.whole(v.path("remembered"), said, number(v.path("stated"))), v::toString);
        });
    }

    private static ColumnFamilyDescriptor family(String name, JsonNode attributes) {
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(name));
        attributes.properties().forEach(each -> family.setValue(each.getKey(), each.getValue().textValue()));
        return family.build();
    }

    private static TableDescriptor table(JsonNode about) throws IOException {
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(TableName.valueOf("t"));
        about.path("families").properties().forEach(each ->
                table.setColumnFamily(family(each.getKey(), each.getValue())));
        for (JsonNode name : about.path("coprocessors")) {
            table.setCoprocessor(CoprocessorDescriptorBuilder.newBuilder(name.textValue()).build());
        }
        return table.build();
    }

    /** Which tables and families are transactions', by the marks that Omid and Phoenix leave and by what is listed. */
    @Test
    void marksOfTables() throws IOException {
        for (JsonNode v : VECTORS.path("marks of tables")) {
            TableDescriptor table = table(v);
            Set<String> wanted = names(v.path("transactional"));
            assertEquals(!wanted.isEmpty(), Omid.marks(table) || v.has("configured"), v::toString);
            assertEquals(v.path("compactor").booleanValue(), Omid.compacts(table), v::toString);
            if (!wanted.isEmpty()) {
                Set<String> found = new TreeSet<>();
                Arrays.stream(Omid.families(table, names(v.path("configured")))).forEach(family ->
                        found.add(family.getNameAsString()));
                assertEquals(wanted, found, v::toString);
            }
        }
    }

    /** Settings by which HBase keeps cells from readers; of several the first is told. */
    @Test
    void settingsThatHide() {
        each("settings that hide").forEach(v -> {
            ObjectNode attributes = v.deepCopy();
            attributes.remove("hide");
            String[] hides = AsOf.hides(family("f", attributes));
            assertEquals(v.path("hide").isEmpty() ? null : v.path("hide").path(0).textValue(), hides == null ? null
                    : hides[0], v::toString);
        });
    }

    /** What a writer goes by, as the jobs hand it over. */
    @Test
    void claims() {
        List<Object> wanted = new ArrayList<>();
        ArrayNode given = new ObjectMapper().createArrayNode();
        each("claims").forEach(v -> {
            JsonNode cell = v.path("cell");
            wanted.add(v.has("life") ? new Claims.LifeClaim(v.path("life").path("table").textValue(),
                    number(v.path("life").path("stated")))
                    : List.of(cell.path("table").textValue(), cell.path("row").textValue(),
                    cell.path("family").textValue(),
                            cell.path("qualifier").textValue(), cell.path("value").textValue()));
            given.add(v.path("json"));
        });
        List<Object> found = new ArrayList<>();
        for (Claims.Claim claim : Claims.parse(given.toString())) {
            found.add(claim instanceof Claims.CellClaim cell ? List.of(cell.table(), Bytes.toHex(cell.row()),
                    Bytes.toString(cell.family()), Bytes.toString(cell.qualifier()), Bytes.toHex(cell.value()))
                            : claim);
        }
        assertEquals(wanted, found);
    }

    /** What the jobs know a table by that is not there: the text of a read's error. */
    @Test
    void errorsKnownByTheirText() {
        TableNotFoundException missing = new TableNotFoundException("orders");
        Connection connection = (Connection) proxy(Connection.class, (proxy, method, arguments) -> proxy(Admin.class,
                (admin, asked, with) -> {
                    if (asked.getName().equals("getDescriptor")) {
                        throw missing;
                    }
                    return null;
                }));
        String text = assertThrows(IllegalArgumentException.class,
                () -> Tables.known(connection, TableName.valueOf("orders"))).getMessage();
        JsonNode errors = VECTORS.path("errors");
        assertTrue(text.startsWith(errors.path("a read of a table that is not there").textValue() + "orders"), text);
    }

    private static Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(ContractTest.class.getClassLoader(), new Class<?>[] {type}, handler);
    }

    /** Kinds of rows, and what can be written, by the names that the jobs use. */
    @Test
    void kindsAndOperations() {
        Set<String> kinds = new TreeSet<>();
        Arrays.stream(Kind.values()).forEach(kind -> kinds.add(kind.label.toString()));
        assertTrue(kinds.containsAll(names(VECTORS.path("kinds"))), kinds::toString);
        Set<String> operations = new TreeSet<>();
        Arrays.stream(Mutation.Op.values()).forEach(op -> operations.add(op.name().toLowerCase(Locale.ROOT)));
        assertEquals(names(VECTORS.path("operations")), operations);
    }
}
