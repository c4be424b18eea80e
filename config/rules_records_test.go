// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import "strings"

const members = "members: [{peer: a, uid: ua, state: Active}]"

var peerSetCases = []ruleCase{
	{name: "create", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}"},
	{name: "a member twice", spec: "{self: {peer: a, uid: ua, state: Active}, members: [{peer: a, uid: ua, state: Active}, {peer: a, uid: ub, state: Active}], epoch: 1}", want: "Duplicate value"},
	{name: "an unknown state", spec: "{self: {peer: a, uid: ua, state: Ready}, " + members + ", epoch: 1}", want: "Unsupported value"},
	{name: "nothing changes", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}"},
	{name: "a change of the next epoch", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Leaving}, " + members + ", epoch: 4}"},
	{name: "a change of the same epoch", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Leaving}, " + members + ", epoch: 3}", want: "epoch must grow"},
	{name: "an earlier epoch", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 2}", want: "epoch must grow"},
	{name: "another name", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: b, uid: ua, state: Active}, " + members + ", epoch: 4}", want: "self cannot become another peer"},
	{name: "a newcomer", spec: "{self: {peer: a, uid: ua, state: Quarantined}, members: [], epoch: 1, change: {id: c1, kind: Join, peer: a, uid: ua, anchor: b}}"},
	{name: "a slot taken", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 4, change: {id: c1, kind: Leave, peer: b, anchor: a, coordinator: x}}"},
	{name: "a sign of life", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 4, change: {id: c1, kind: Leave, peer: b}}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 5, change: {id: c1, kind: Leave, peer: b, heartbeat: 1}}"},
	{name: "a change that is over", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 4, change: {id: c1, kind: Leave, peer: b}}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 5, change: {id: c1, kind: Leave, peer: b, over: true}}"},
	{name: "a peer dropped", old: "{self: {peer: a, uid: ua, state: Active}, members: [{peer: a, uid: ua, state: Active}, {peer: b, uid: ub, state: Active}], epoch: 4, change: {id: c1, kind: ForceRemove, peer: b}}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 5, change: {id: c1, kind: ForceRemove, peer: b}, departed: [{peer: b, how: Forced, by: alice, at: '2026-01-02T03:04:05Z'}]}"},
	{name: "a slot freed", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 5, change: {id: c1, kind: Comeback, peer: b}}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 6}"},
	{name: "a slot taken in the same epoch", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3, change: {id: c1, kind: Leave, peer: b}}", want: "epoch must grow"},
	{name: "an unknown change", spec: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1, change: {id: c1, kind: Merge, peer: b}}", want: "Unsupported value"},
	{name: "another cluster", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ub, state: Active}, " + members + ", epoch: 4}", want: "self cannot become another peer"},
	{name: "a ring", spec: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}"},
	{name: "a ring ID is made", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", spec: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 2}"},
	{name: "a ring ID stays", old: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", spec: "{ring: r1, self: {peer: a, uid: ua, state: Leaving}, " + members + ", epoch: 2}"},
	{name: "a ring ID made in the same epoch", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", spec: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", want: "epoch must grow"},
	{name: "another ring", old: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", spec: "{ring: r2, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 2}", want: "ring never changes"},
	{name: "a ring ID dropped by the first release", old: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", spec: "{self: {peer: a, uid: ua, state: Leaving}, " + members + ", epoch: 2}", want: "ring was dropped: the program that writes does not know it and is older than this definition: upgrade it"},
	{name: "an empty ring ID", spec: "{ring: '', self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", want: "ring"},
	{name: "an endless ring ID", spec: "{ring: " + strings.Repeat("r", 65) + ", self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 1}", want: "Too long"},
	{name: "a departure of a cluster", spec: "{ring: r1, self: {peer: a, uid: ua, state: Active}, " + members + ", departed: [{peer: b, uid: ub, how: Left, at: '2026-01-02T03:04:05Z'}], epoch: 1}"},
}

const (
	record  = `operation: op-1, kind: Account, began: "2026-01-02T03:04:05.000000001Z"`
	pending = record + ", state: Pending"
	settled = record + ", state: Committed, target: a, targetUID: u1"
	ended   = `, state: Ended, ended: "2026-01-02T03:04:06Z"`
)

var operationCases = []ruleCase{
	{name: "create", spec: "{" + pending + ", key: k, payload: aGVsbG8=}"},
	{name: "an unknown state", spec: "{" + record + ", state: Done}", want: "Unsupported value"},
	{name: "no state", spec: "{" + record + "}", want: "state: Required value"},
	{name: "no time", spec: "{operation: op-1, began: yesterday, state: Open}", want: "date-time"},
	{name: "the commit", old: "{" + pending + "}", spec: "{" + settled + "}"},
	{name: "a commit of nothing", old: "{" + pending + "}", spec: "{" + record + ", state: Committed}", want: "a decision names the target"},
	{name: "the abort", old: "{" + pending + "}", spec: "{" + record + ended + "}"},
	{name: "the end", old: "{" + settled + "}", spec: "{" + record + ", target: a, targetUID: u1" + ended + "}"},
	{name: "an end without a time", old: "{" + settled + "}", spec: "{" + record + ", target: a, targetUID: u1, state: Ended}", want: "ended goes with state Ended"},
	{name: "the way back", old: "{" + settled + "}", spec: "{" + pending + ", target: a, targetUID: u1}", want: "a decided operation stays decided"},
	{name: "life after the end", old: "{" + record + ended + "}", spec: "{" + pending + "}", want: "an ended one stays ended"},
	{name: "a decision after the end", old: "{" + record + ended + "}", spec: "{" + settled + "}", want: "an ended one stays ended"},
	{name: "a write after the end", old: "{" + record + ended + ", write: a}", spec: "{" + record + ended + ", write: b}", want: "what has ended is history"},
	{name: "a decision of what is decided elsewhere", old: "{" + record + ", state: Open}", spec: "{" + settled + "}", want: "state cannot go from Open to Committed"},
	{name: "the key is taken", old: "{" + record + ", state: Beginning}", spec: "{" + pending + "}"},
	{name: "a decision without the key", old: "{" + record + ", state: Beginning}", spec: "{" + settled + "}", want: "state cannot go from Beginning to Committed"},
	{name: "another target", old: "{" + settled + "}", spec: "{" + record + ", state: Committed, target: a, targetUID: u2}", want: "the target's UID cannot change"},
	{name: "another operation", old: "{" + pending + "}", spec: `{operation: op-2, kind: Account, began: "2026-01-02T03:04:05.000000001Z", state: Pending}`, want: "begin another operation"},
	{name: "another kind", old: "{" + pending + "}", spec: `{operation: op-1, kind: Secret, began: "2026-01-02T03:04:05.000000001Z", state: Pending}`, want: "begin another operation"},
	{name: "another beginning", old: "{" + pending + "}", spec: `{operation: op-1, kind: Account, began: "2026-01-02T03:04:06Z", state: Pending}`, want: "begin another operation"},
	{name: "a key added", old: "{" + pending + "}", spec: "{" + pending + ", key: k}", want: "begin another operation"},
	{name: "a key changed", old: "{" + pending + ", key: k}", spec: "{" + pending + ", key: l}", want: "begin another operation"},
	{name: "another holder", old: "{" + pending + ", holder: h1}", spec: "{" + pending + ", holder: h2, step: reserving}"},
	{name: "a key", spec: "{" + record + ", state: Key, key: k, keyOf: {name: op-1, uid: u1}}"},
	{name: "a key of another record", old: "{" + record + ", state: Key, key: k, keyOf: {name: op-1, uid: u1}}", spec: "{" + record + ", state: Key, key: k, keyOf: {name: op-2, uid: u2}}"},
	{name: "a key of nothing", spec: "{" + record + ", state: Key, key: k}", want: "keyOf goes with state Key"},
}

var syncTargetCases = []ruleCase{
	{name: "neither", spec: "{}"},
	{name: "a kubeconfig", spec: "{kubeconfig: x}"},
	{name: "a secret", spec: "{kubeconfigSecret: {name: x, namespace: ns}}"},
	{name: "pods", spec: "{pods: 0}"},
	{name: "less than no pods", spec: "{pods: -1}", want: "pods in body should be greater than or equal to 0"},
	{name: "capacity", spec: "{capacity: {cpu: 4, memory: 8Gi, example.com/gpu: 0}}"},
	{name: "capacity of pods", spec: "{capacity: {pods: 4}}", want: "set spec.pods instead"},
	{name: "both", spec: "{kubeconfig: x, kubeconfigSecret: {name: x, namespace: ns}}", want: "not both"},
	{name: "taints", spec: "{taints: [{key: example.com/gpu, value: a100, effect: NoSchedule}, {key: example.com/gpu, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}]}"},
	{name: "a taint twice", spec: "{taints: [{key: a, value: b, effect: NoSchedule}, {key: a, effect: NoSchedule}]}", want: "Duplicate value"},
	{name: "a taint without an effect", spec: "{taints: [{key: a}]}", want: "Required value"},
	{name: "an unknown effect", spec: "{taints: [{key: a, effect: Never}]}", want: "Unsupported value"},
	{name: "a taint with a malformed key", spec: "{taints: [{key: a/b/c, effect: NoSchedule}]}", want: "should match"},
	{name: "a taint with a malformed value", spec: "{taints: [{key: a, value: -, effect: NoSchedule}]}", want: "should match"},
	{name: "a taint at no time", spec: "{taints: [{key: a, effect: NoExecute, timeAdded: soon}]}", want: "must be of type date-time"},
}

var clusterDaemonSetCases = []ruleCase{
	{name: "create", spec: "{selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}}"},
	{name: "no template", spec: "{selector: {matchLabels: {app: x}}}", want: "template: Required value"},
	{name: "another template", old: "{selector: {matchLabels: {app: x}}, template: {spec: {}}}", spec: "{selector: {matchLabels: {app: x}}, template: {spec: {hostNetwork: true}}}"},
	{name: "another selector", old: "{selector: {matchLabels: {app: x}}, template: {}}", spec: "{selector: {matchLabels: {app: z}}, template: {}}", want: "selector cannot be changed"},
}

var clusterPlacementPolicyCases = append([]ruleCase{
	{name: "create", spec: "{namespaceSelector: {matchLabels: {team: web}}, mode: Fewest}"},
}, placementSpecCases...)

var placementPolicyCases = append([]ruleCase{
	{name: "create", spec: "{clusters: [{name: a, weight: 2, min: 1, max: 3}]}"},
}, placementSpecCases...)

// placementSpecCases are the cases of both types of policies.
var placementSpecCases = []ruleCase{
	{name: "an unknown mode", spec: "{mode: Pack}", want: "Unsupported value"},
	{name: "a cluster twice", spec: "{clusters: [{name: a}, {name: a}]}", want: "Duplicate value"},
	{name: "spread", spec: "{mode: None, spreadBy: [topology.kubernetes.io/zone], dependents: true}"},
	{name: "bounds that cross", spec: "{clusters: [{name: a, min: 4, max: 3}]}", want: "min must not be above max"},
	{name: "tolerations", spec: "{tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]}"},
	{name: "a toleration of any key with a value", spec: "{tolerations: [{value: b}]}", want: "operator must be Exists if key is empty"},
	{name: "a toleration of any value with a value", spec: "{tolerations: [{key: a, operator: Exists, value: b}]}", want: "value must be empty if operator is Exists"},
	{name: "a toleration of all effects with seconds", spec: "{tolerations: [{key: a, tolerationSeconds: 1}]}", want: "effect must be NoExecute if tolerationSeconds is set"},
	{name: "bounds of groups", spec: "{maxClusters: 2, spreadBy: [region, zone], groups: [{key: zone, minGroups: 2, maxClusters: 1}, {key: region}]}"},
	{name: "bounds of other groups", spec: "{spreadBy: [region], groups: [{key: zone}]}", want: "each key of groups must be one of spreadBy"},
	{name: "bounds of no groups", spec: "{groups: [{key: zone}]}", want: "each key of groups must be one of spreadBy"},
	{name: "more groups than clusters", spec: "{maxClusters: 1, spreadBy: [zone], groups: [{key: zone, minGroups: 2}]}", want: "minGroups must not be above maxClusters"},
	{name: "a group twice", spec: "{spreadBy: [zone], groups: [{key: zone}, {key: zone}]}", want: "Duplicate value"},
	{name: "an unknown operator", spec: "{tolerations: [{key: a, operator: Lt}]}", want: "Unsupported value"},
	{name: "an unknown effect", spec: "{tolerations: [{key: a, effect: Never}]}", want: "Unsupported value"},
}

const (
	rollouts     = "resource: {group: argoproj.io, version: v1alpha1, resource: rollouts, kind: Rollout}"
	rolloutField = "{" + rollouts + ", status: {fields: [{path: status.x, "
)

var workloadTypeCases = []ruleCase{
	{name: "create", spec: "{" + rollouts + ", templates: [spec.template, 'spec.parts[*].t', 'spec[\"a.b\"]'], status: {health: {condition: Ready}}}"},
	{name: "another name", spec: "{resource: {group: argoproj.io, version: v1alpha1, resource: others, kind: Rollout}}", want: "metadata.name must be RESOURCE.GROUP"},
	{name: "another version", old: "{" + rollouts + "}", spec: "{resource: {group: argoproj.io, version: v1, resource: rollouts, kind: Rollout}}"},
	{name: "another kind", old: "{" + rollouts + "}", spec: "{resource: {group: argoproj.io, version: v1alpha1, resource: rollouts, kind: Other}}", want: "kind cannot be changed"},
	{name: "an empty name in a path", spec: "{" + rollouts + ", replicas: spec..x}", want: "spec.replicas"},
	{name: "a long path", spec: "{" + rollouts + ", replicas: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a}", want: "spec.replicas"},
	{name: "worst", spec: rolloutField + "fold: Worst, order: [Bad, Good]}]}}"},
	{name: "worst without an order", spec: rolloutField + "fold: Worst}]}}", want: "order is required with the fold Worst"},
	{name: "always", spec: rolloutField + "fold: Sum, always: true}]}}"},
	{name: "the same always", spec: rolloutField + "fold: Same, always: true}]}}", want: "always is possible only with the fold Sum"},
	{name: "health by both", spec: "{" + rollouts + ", status: {health: {condition: Ready, path: status.phase, values: [Up]}}}", want: "set either condition or path"},
	{name: "a reference to a custom type", spec: "{" + rollouts + ", references: [{path: spec.x, resource: checks, group: a.b, version: v1}, {path: spec.y, resource: secrets}]}"},
	{name: "a reference without a version", spec: "{" + rollouts + ", references: [{path: spec.x, resource: checks, group: a.b}]}", want: "set group and version together"},
	{name: "a reference to another core type", spec: "{" + rollouts + ", references: [{path: spec.x, resource: nodes}]}", want: "without a group, resource is configmaps"},
	{name: "health without values", spec: "{" + rollouts + ", status: {health: {path: status.phase}}}", want: "set path and values together"},
}
