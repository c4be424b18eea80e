// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

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
	{name: "another cluster", old: "{self: {peer: a, uid: ua, state: Active}, " + members + ", epoch: 3}", spec: "{self: {peer: a, uid: ub, state: Active}, " + members + ", epoch: 4}", want: "self cannot become another peer"},
}

const record = `operation: op-1, kind: Account, began: "2026-01-02T03:04:05.000000Z"`

var operationCases = []ruleCase{
	{name: "create", spec: "{" + record + ", key: k, payload: aGVsbG8=}"},
	{name: "an unknown state", spec: "{" + record + ", state: Done}", want: "Unsupported value"},
	{name: "the commit", old: "{" + record + "}", spec: "{" + record + ", state: Committed, target: a, targetUID: u1}"},
	{name: "the way back", old: "{" + record + ", state: Committed}", spec: "{" + record + ", state: Pending}", want: "a committed operation stays committed"},
	{name: "the state dropped", old: "{" + record + ", state: Committed}", spec: "{" + record + "}", want: "a committed operation stays committed"},
	{name: "another target", old: "{" + record + ", targetUID: u1}", spec: "{" + record + ", targetUID: u2}", want: "the target's UID cannot change"},
	{name: "the target forgotten", old: "{" + record + ", targetUID: u1}", spec: "{" + record + "}", want: "the target's UID cannot change"},
	{name: "another operation", old: "{" + record + "}", spec: `{operation: op-2, kind: Account, began: "2026-01-02T03:04:05.000000Z"}`, want: "begin another operation"},
	{name: "another kind", old: "{" + record + "}", spec: `{operation: op-1, kind: Secret, began: "2026-01-02T03:04:05.000000Z"}`, want: "begin another operation"},
	{name: "another beginning", old: "{" + record + "}", spec: `{operation: op-1, kind: Account, began: "2026-01-02T03:04:06.000000Z"}`, want: "begin another operation"},
	{name: "a key added", old: "{" + record + "}", spec: "{" + record + ", key: k}", want: "begin another operation"},
	{name: "a key changed", old: "{" + record + ", key: k}", spec: "{" + record + ", key: l}", want: "begin another operation"},
	{name: "another holder", old: "{" + record + ", holder: h1}", spec: "{" + record + ", holder: h2, step: reserving}"},
}

var syncTargetCases = []ruleCase{
	{name: "neither", spec: "{}"},
	{name: "a kubeconfig", spec: "{kubeconfig: x}"},
	{name: "a secret", spec: "{kubeconfigSecret: {name: x, namespace: ns}}"},
	{name: "both", spec: "{kubeconfig: x, kubeconfigSecret: {name: x, namespace: ns}}", want: "not both"},
}

var clusterDaemonSetCases = []ruleCase{
	{name: "create", spec: "{selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}}"},
	{name: "no template", spec: "{selector: {matchLabels: {app: x}}}", want: "template: Required value"},
	{name: "another template", old: "{selector: {matchLabels: {app: x}}, template: {spec: {}}}", spec: "{selector: {matchLabels: {app: x}}, template: {spec: {hostNetwork: true}}}"},
	{name: "another selector", old: "{selector: {matchLabels: {app: x}}, template: {}}", spec: "{selector: {matchLabels: {app: z}}, template: {}}", want: "selector cannot be changed"},
}

var placementPolicyCases = []ruleCase{
	{name: "create", spec: "{clusters: [{name: a, weight: 2, min: 1, max: 3}]}"},
	{name: "a cluster twice", spec: "{clusters: [{name: a}, {name: a}]}", want: "Duplicate value"},
	{name: "bounds that cross", spec: "{clusters: [{name: a, min: 4, max: 3}]}", want: "min must not be above max"},
}
