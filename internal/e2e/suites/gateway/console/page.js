// A console in a browser: it lists, watches, edits, creates and deletes ConfigMaps of all regions with JavaScript's
// Kubernetes client, at the merged address of a gateway, and reports what it saw.
import { PromiseCoreV1Api as CoreV1Api } from "@kubernetes/client-node/dist/gen/types/PromiseAPI.js";
import { createConfiguration } from "@kubernetes/client-node/dist/gen/configuration.js";
import { ServerConfiguration } from "@kubernetes/client-node/dist/gen/servers.js";

const namespace = "default";

// watch calls seen with each event until it returns true. The client's own watch needs streams of Node.js.
async function watch(server, authorization, version, seen) {
  const path = `/api/v1/namespaces/${namespace}/configmaps?watch=true&resourceVersion=${encodeURIComponent(version)}`;
  const response = await fetch(server + path, { headers: { authorization } });
  if (!response.ok) throw new Error(`watch: ${response.status} ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the watch ended");
    text += value;
    for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) {
      if (seen(JSON.parse(text.slice(0, end)))) return reader.cancel();
    }
  }
}

async function use({ server, token }) {
  const authorization = `Bearer ${token}`;
  const api = new CoreV1Api(createConfiguration({
    baseServer: new ServerConfiguration(server, {}),
    authMethods: { default: { getName: () => "token", applySecurityAuthentication: (c) => c.setHeaderParam("authorization", authorization) } },
  }));
  const list = await api.listNamespacedConfigMap(namespace);
  const shown = list.items.map((o) => o.metadata.name).filter((name) => name.startsWith("shown")).sort();

  const events = [];
  const watching = watch(server, authorization, list.metadata.resourceVersion, ({ type, object }) => {
    if (!object.metadata.name.startsWith("shown") && !object.metadata.name.startsWith("made")) return false;
    events.push(`${type} ${object.metadata.name} ${object.data?.by ?? ""}`);
    return type === "DELETED";
  });
  const edited = shown.find((name) => name.endsWith("@us-east-1.loodse"));
  const object = await api.readNamespacedConfigMap(edited, namespace);
  object.data = { ...object.data, by: "console" };
  await api.replaceNamespacedConfigMap(edited, namespace, object);
  const made = "made@eu-west-1.loodse";
  await api.createNamespacedConfigMap(namespace, { metadata: { name: made }, data: { by: "console" } });
  await api.deleteNamespacedConfigMap(made, namespace);
  await watching;
  return { shown, events };
}

async function report(result) {
  await fetch("/report", { method: "POST", body: JSON.stringify(result) });
}

fetch("/setup").then((r) => r.json()).then(use).then(report, (err) => report({ error: String(err?.body ?? err) }));
