// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

const secret = "kubeconfigSecret: {name: db-1}"

var serviceClusterCases = []ruleCase{
	{name: "adoption", old: "{" + secret + "}", spec: "{" + secret + ", fanout: {" + primary + ", stage: Configured}}"},
	{name: "an applied object is free to change", old: "{" + secret + "}", spec: "{kubeconfigSecret: {name: other}}"},
	{name: "create a primary with its payload", spec: "{" + secret + ", fanout: {" + primary + ", stage: Reserved}}"},
	{name: "the commit", old: "{" + secret + ", fanout: {" + primary + ", stage: Reserved}}", spec: "{" + secret + ", fanout: {" + primary + ", stage: Configured}}"},
	{
		name: "the commit of a decision elsewhere",
		old:  "{" + secret + ", fanout: {" + primary + ", stage: Reserved}}", spec: "{" + secret + ", fanout: {" + primary + ", stage: Decided}}",
	},
	{name: "the commit without kubeconfig", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Configured}}", want: "needs kubeconfigSecret.name"},
	{name: "a nameless secret", spec: "{kubeconfigSecret: {}}", want: "name: Required value"},
	{name: "another stage of rank one", old: "{" + secret + ", fanout: {" + primary + ", stage: Configured}}", spec: "{" + secret + ", fanout: {" + primary + ", stage: Decided}}", want: "stage cannot go from Configured to Decided"},
	{name: "the stage of other kinds", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Active}}", want: "the stages of a ServiceCluster are"},
	{
		name: "a changed secret in a reservation",
		old:  "{" + secret + ", fanout: {" + primary + ", stage: Reserved}}", spec: "{kubeconfigSecret: {name: other}, fanout: {" + primary + ", stage: Reserved}}",
		want: "operation op-1 holds the name for peer a",
	},
	{
		name: "payload added to a reservation",
		old:  "{fanout: {" + primary + ", stage: Reserved}}", spec: "{metadata: {displayName: x}, fanout: {" + primary + ", stage: Reserved}}",
		want: "operation op-1 holds the name for peer a",
	},
	{
		name: "payload dropped from a reservation",
		old:  "{" + secret + ", fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Reserved}}",
		want: "operation op-1 holds the name for peer a",
	},
	{
		name: "a changed payload once committed",
		old:  "{" + secret + ", fanout: {" + primary + ", stage: Configured}}", spec: "{kubeconfigSecret: {name: other}, metadata: {description: x}, fanout: {" + primary + ", stage: Configured}}",
	},
	{name: "a guard with a secret", spec: "{" + secret + ", fanout: {" + secondary + ", stage: Reserved}}", want: "a guard carries no payload: the ServiceCluster of this name is in peer a"},
	{name: "a guard with a display name", spec: "{metadata: {displayName: x}, fanout: {" + secondary + ", stage: Reserved}}", want: "a guard carries no payload"},
	{name: "a manifest applied to a guard", old: "{fanout: {" + secondary + ", stage: Reserved}}", spec: "{" + secret + ", fanout: {" + secondary + ", stage: Reserved}}", want: "a guard carries no payload"},
	{name: "a guard never becomes the cluster", old: "{fanout: {" + secondary + ", stage: Reserved}}", spec: "{fanout: {" + secondary + ", stage: Configured}}", want: "needs kubeconfigSecret.name"},
	{
		name: "the target of a decision elsewhere",
		old:  "{" + secret + ", fanout: {" + decided + ", stage: Reserved}}", spec: "{" + secret + ", fanout: {" + decided + ", stage: Configured}}",
	},
}

// decided is the claim of a secondary in the target of the operation, while the primary is in
// another peer.
const decided = `claim: {operation: op-1, digest: d1, start: "2026-01-02T03:04:05.000000Z", role: Secondary, peer: b, target: b, primary: {peer: a, uid: u1}}`

var regionClaimCases = []ruleCase{
	{name: "adoption", old: "{}", spec: "{fanout: {" + primary + ", stage: Configured}}"},
	{name: "the commit", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Configured}}"},
	{name: "the stage of other kinds", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Active}}", want: "the stages of a RegionClaim are"},
}

var accountCases = []ruleCase{
	{name: "adoption", old: "{roles: [Tenant]}", spec: "{roles: [Tenant], fanout: {" + primary + ", stage: Active, revision: {number: 1, operation: op-1}, home: {peer: a, uid: u1, term: 1}}}"},
	{name: "an applied object is free to change", old: "{roles: [Tenant]}", spec: "{roles: [Provider]}"},
	{name: "a role twice", spec: "{roles: [Tenant, Tenant]}", want: "Duplicate value"},
	{name: "an unknown role", spec: "{roles: [Guest]}", want: "Unsupported value"},
	{name: "the commit", old: "{roles: [Tenant], fanout: {" + primary + ", stage: Reserved}}", spec: "{roles: [Tenant], fanout: {" + primary + ", stage: Active}}"},
	{name: "the stage of other kinds", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Configured}}", want: "the stages of an Account are"},

	{name: "roles changed in a reservation", old: "{roles: [Tenant], fanout: {" + primary + ", stage: Reserved}}", spec: "{roles: [Provider], fanout: {" + primary + ", stage: Reserved}}", want: "a reservation cannot be changed"},
	{name: "subjects added to a reservation", old: "{fanout: {" + primary + ", stage: Reserved}}", spec: "{subjects: [{kind: User, name: alice}], fanout: {" + primary + ", stage: Reserved}}", want: "a reservation cannot be changed"},
	{name: "metadata dropped from a reservation", old: "{metadata: {displayName: x}, fanout: {" + primary + ", stage: Reserved}}", spec: "{fanout: {" + primary + ", stage: Reserved}}", want: "a reservation cannot be changed"},
	{name: "the order of roles means nothing", old: "{roles: [Tenant, Provider], fanout: {" + primary + ", stage: Reserved}}", spec: "{roles: [Provider, Tenant], fanout: {" + primary + ", stage: Reserved}}"},

	{name: "a request on the home", old: home("[Tenant]", 1), spec: home("[Provider]", 1)},
	{name: "an update of the home", old: home("[Tenant]", 1), spec: home("[Provider]", 2)},
	{name: "a request on a primary that never moved", old: "{fanout: {" + primary + ", stage: Active}}", spec: "{roles: [Tenant], fanout: {" + primary + ", stage: Active}}"},
	{name: "a manifest applied to a replica", old: replica("[Tenant]", "Active", 1), spec: replica("[Provider]", "Active", 1), want: "change the Account in peer a"},
	{
		name: "a manifest applied to a replica that never moved",
		old:  "{fanout: {" + secondary + ", stage: Active}}", spec: "{roles: [Tenant], fanout: {" + secondary + ", stage: Active}}",
		want: "change the Account in peer a",
	},
	{name: "a replica is brought to a later revision", old: replica("[Tenant]", "Active", 1), spec: replica("[Provider]", "Active", 2)},
	{name: "a replica is brought from nothing", old: replica("[Tenant]", "Reserved", 0), spec: replica("[Provider]", "Active", 1)},
	{name: "a replica is activated as reserved", old: replica("[Tenant]", "Reserved", 1), spec: replica("[Tenant]", "Active", 1)},
	{name: "a replica is activated with other content", old: replica("[Tenant]", "Reserved", 1), spec: replica("[Provider]", "Active", 1), want: "a replica follows its home"},
	{
		name: "a replica becomes the home", old: replica("[Tenant]", "Active", 1),
		spec: "{roles: [Tenant], fanout: {" + secondary + ", stage: Active, revision: {number: 1, operation: op-1}, home: {peer: b, uid: u2, term: 2}}}",
	},
}

// home returns the spec of an Account in its home.
func home(roles string, revision int) string {
	return "{roles: " + roles + ", fanout: {" + primary + ", stage: Active, " + revisionOf(revision) + ", home: {peer: a, uid: u1, term: 1}}}"
}

// replica returns the spec of the replica of this Account in peer b.
func replica(roles, stage string, revision int) string {
	return "{roles: " + roles + ", fanout: {" + secondary + ", stage: " + stage + ", " + revisionOf(revision) + ", home: {peer: a, uid: u1, term: 1}}}"
}

func revisionOf(number int) string {
	return map[int]string{
		0: "revision: {number: 0, operation: op-1}",
		1: "revision: {number: 1, operation: op-1}",
		2: "revision: {number: 2, operation: op-2}",
	}[number]
}
