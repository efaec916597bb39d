package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.SnapshotDescription;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;

/** Tables: made, emptied, dropped, kept as HBase snapshots, and given Omid's own compactor. */
final class Tables {

    private static final String COMPACTOR = "org.apache.omid.transaction.OmidCompactor";
    private static final String FLAG = "OMID_ENABLED";

    private final Admin admin;

    Tables(Store store) {
        this.admin = store.admin;
    }

    void register(Commands commands) {
        commands.add("tables", request -> tables());
        commands.add("create", this::create);
        commands.add("truncate", this::truncate);
        commands.add("drop", this::drop);
        commands.add("set", this::set);
        commands.add("add_family", this::addFamily);
        commands.add("disable", this::disable);
        commands.add("enable", this::enable);
        commands.add("attach_omid_compactor", request -> alter(request, true));
        commands.add("detach_omid_compactor", request -> alter(request, false));
        commands.add("snapshot", this::snapshot);
        commands.add("clone", this::cloneSnapshot);
        commands.add("restore", this::restore);
        commands.add("delete_snapshot", this::deleteSnapshot);
        commands.add("snapshots", request -> snapshots());
    }

    private JsonElement tables() throws Exception {
        JsonArray names = new JsonArray();
        for (TableName name : admin.listTableNames()) {
            names.add(name.getNameAsString());
        }
        return names;
    }

    /** Its namespace is made, where there is none; attributes and settings are as HBase's shell takes them. */
    private JsonElement create(JsonObject request) throws Exception {
        TableName name = name(request);
        if (!List.of(admin.listNamespaces()).contains(name.getNamespaceAsString())) {
            admin.createNamespace(NamespaceDescriptor.create(name.getNamespaceAsString()).build());
        }
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
        texts(request, "attributes").forEach(table::setValue);
        for (JsonElement family : request.getAsJsonArray("families")) {
            ColumnFamilyDescriptorBuilder builder = ColumnFamilyDescriptorBuilder.newBuilder(Json.bytes(family))
                    .setMaxVersions(request.get("versions").getAsInt());
            texts(request, "settings").forEach(builder::setValue);
            if (request.get("omid_enabled").getAsBoolean()) {
                builder.setValue(FLAG, "true");
            }
            table.setColumnFamily(builder.build());
        }
        JsonArray splits = request.getAsJsonArray("splits");
        byte[][] keys = new byte[splits.size()][];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = Json.bytes(splits.get(i));
        }
        admin.createTable(table.build(), keys);
        return null;
    }

    private JsonElement truncate(JsonObject request) throws Exception {
        admin.disableTable(name(request));
        admin.truncateTable(name(request), true);
        return null;
    }

    private JsonElement drop(JsonObject request) throws Exception {
        TableName name = name(request);
        if (admin.tableExists(name)) {
            if (admin.isTableEnabled(name)) {
                admin.disableTable(name);
            }
            admin.deleteTable(name);
        }
        return null;
    }

    /** A family like those that bear Omid's flag and keep all versions. */
    private JsonElement addFamily(JsonObject request) throws Exception {
        admin.addColumnFamily(
                name(request),
                ColumnFamilyDescriptorBuilder.newBuilder(Json.bytes(request, "family"))
                        .setMaxVersions(Integer.MAX_VALUE)
                        .setValue(FLAG, "true")
                        .build());
        return null;
    }

    private JsonElement disable(JsonObject request) throws Exception {
        admin.disableTable(name(request));
        return null;
    }

    private JsonElement enable(JsonObject request) throws Exception {
        admin.enableTable(name(request));
        return null;
    }

    /** Sets attributes of the table, and settings of all its families, as HBase's shell does. */
    private JsonElement set(JsonObject request) throws Exception {
        TableDescriptor before = admin.getDescriptor(name(request));
        TableDescriptorBuilder after = TableDescriptorBuilder.newBuilder(before);
        texts(request, "attributes").forEach(after::setValue);
        for (ColumnFamilyDescriptor family : before.getColumnFamilies()) {
            ColumnFamilyDescriptorBuilder builder = ColumnFamilyDescriptorBuilder.newBuilder(family);
            texts(request, "families").forEach(builder::setValue);
            after.modifyColumnFamily(builder.build());
        }
        admin.modifyTable(after.build());
        return null;
    }

    private JsonElement alter(JsonObject request, boolean attach) throws Exception {
        TableDescriptor before = admin.getDescriptor(name(request));
        TableDescriptorBuilder after = TableDescriptorBuilder.newBuilder(before);
        boolean attached = before.getCoprocessorDescriptors().stream()
                .map(CoprocessorDescriptor::getClassName)
                .anyMatch(COMPACTOR::equals);
        if (attach && !attached) {
            after.setCoprocessor(COMPACTOR);
        }
        if (!attach && attached) {
            after.removeCoprocessor(COMPACTOR);
        }
        if (attach) { // the flag says what the table is, and stays when the compactor goes
            for (ColumnFamilyDescriptor family : before.getColumnFamilies()) {
                after.modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setValue(FLAG, "true").build());
            }
        }
        admin.modifyTable(after.build());
        return null;
    }

    private JsonElement snapshot(JsonObject request) throws Exception {
        admin.snapshot(request.get("snapshot").getAsString(), name(request));
        return null;
    }

    private JsonElement cloneSnapshot(JsonObject request) throws Exception {
        admin.cloneSnapshot(request.get("snapshot").getAsString(), name(request));
        return null;
    }

    private JsonElement restore(JsonObject request) throws Exception {
        String snapshot = request.get("snapshot").getAsString();
        TableName name = admin.listSnapshots().stream()
                .filter(each -> each.getName().equals(snapshot))
                .map(SnapshotDescription::getTableName)
                .findAny()
                .orElseThrow(() -> new IllegalArgumentException("there is no HBase snapshot " + snapshot));
        admin.disableTable(name);
        admin.restoreSnapshot(snapshot);
        admin.enableTable(name);
        return null;
    }

    private JsonElement deleteSnapshot(JsonObject request) throws Exception {
        admin.deleteSnapshot(request.get("snapshot").getAsString());
        return null;
    }

    private JsonElement snapshots() throws Exception {
        JsonArray names = new JsonArray();
        for (SnapshotDescription snapshot : admin.listSnapshots()) {
            names.add(snapshot.getName());
        }
        return names;
    }

    private static Map<String, String> texts(JsonObject request, String field) {
        Map<String, String> texts = new TreeMap<>();
        request.getAsJsonObject(field).entrySet().forEach(
                each -> texts.put(each.getKey(), each.getValue().getAsString()));
        return texts;
    }

    private static TableName name(JsonObject request) {
        return TableName.valueOf(request.get("table").getAsString());
    }
}
