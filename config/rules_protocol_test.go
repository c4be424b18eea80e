// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

// These are parts of spec.fanout. primary is the claim of the primary in peer a.
// secondary and recorded are claims of an object in peer b: secondary names the
// primary, and recorded names a record instead. These three claims belong to
// operation op-1; stranger is a claim of another operation.
const (
	primary   = `claim: {operation: op-1, digest: d1, start: "2026-01-02T03:04:05.000000Z", role: Primary, peer: a, target: a}`
	secondary = `claim: {operation: op-1, digest: d1, start: "2026-01-02T03:04:05.000000Z", role: Secondary, peer: b, target: a, primary: {peer: a, uid: u1}}`
	recorded  = `claim: {operation: op-1, digest: d1, start: "2026-01-02T03:04:05.000000Z", role: Secondary, peer: b, target: a, record: r1}`
	bound     = `, stage: Reserved, bound: {peer: a, uid: u1}`
	stranger  = `claim: {operation: op-2, digest: d1, start: "2026-01-02T03:04:05.000000Z", role: Primary, peer: a, target: a}`
	removal   = `removal: {operation: op-9, start: "2026-01-03T03:04:05.000000Z"}`
)

// kind holds the properties of a kind that the protocol's cases depend on.
type kind struct {
	committed string // its committed stage
}

var (
	onceKind       = kind{committed: "Configured"}
	everywhereKind = kind{committed: "Active"}
)

// protocolCases returns the cases of spec.fanout that all kinds with this field
// share. The primaries that the cases write are reserved or being removed,
// because such primaries need no payload.
func protocolCases(k kind) []ruleCase {
	fanout := func(fields string) string { return "{fanout: {" + fields + "}}" }
	reserved := fanout(primary + ", stage: Reserved")
	removing := fanout(primary + ", stage: Removing, " + removal)
	return []ruleCase{
		{name: "create without claim", spec: "{}"},
		{name: "create without spec", spec: "absent"},
		{name: "create a reserved primary", spec: reserved},
		{name: "create a reserved secondary", spec: fanout(secondary + ", stage: Reserved")},
		{name: "create a secondary that is past Reserved", spec: fanout(secondary + ", stage: Removing, " + removal), want: "is created Reserved or without spec.fanout"},
		{name: "create a primary that is past Reserved", spec: removing, want: "is created Reserved or without spec.fanout"},

		{name: "create a claim that names a record", spec: fanout(recorded + ", stage: Reserved")},
		{name: "a claim that names a record and a primary", want: "a claim names its record alone",
			spec: fanout(`claim: {operation: o, digest: d, start: "2026-01-02T03:04:05Z", role: Secondary, peer: b, target: a, record: r, primary: {peer: a, uid: u}}, stage: Reserved`)},
		{name: "bind", old: fanout(recorded + ", stage: Reserved"), spec: fanout(recorded + bound)},
		{name: "bind again", old: fanout(recorded + bound), spec: fanout(recorded + ", stage: Reserved, bound: {peer: a, uid: u2}"), want: "bound is set once"},
		{name: "unbind", old: fanout(recorded + bound), spec: fanout(recorded + ", stage: Reserved"), want: "bound is set once"},
		{name: "bind a guard to its primary", old: fanout(secondary + ", stage: Reserved"), spec: fanout(secondary + ", stage: Reserved, bound: {peer: a, uid: u1}")},
		{name: "bind a guard to another's primary", old: fanout(secondary + ", stage: Reserved"), spec: fanout(secondary + ", stage: Reserved, bound: {peer: a, uid: u2}"), want: "bound is set once"},
		{name: "bind a primary", old: reserved, spec: fanout(primary + ", stage: Reserved, bound: {peer: a, uid: u}"), want: "bound is set once"},

		{name: "claim without stage", spec: fanout(primary), want: "claim and stage are both needed"},
		{name: "stage without claim", spec: fanout("stage: Reserved"), want: "claim and stage are both needed"},
		{name: "fanout without either", spec: fanout("heartbeat: 1"), want: "claim and stage are both needed"},
		{name: "a role that does not exist", spec: fanout(`claim: {operation: o, digest: d, start: "2026-01-02T03:04:05Z", role: Third, peer: a, target: a}, stage: Reserved`), want: "Unsupported value"},
		{name: "a stage that does not exist", spec: fanout(primary + ", stage: Perhaps"), want: "Unsupported value"},
		{
			name: "a secondary without primary",
			spec: fanout(`claim: {operation: o, digest: d, start: "2026-01-02T03:04:05Z", role: Secondary, peer: b, target: b}, stage: Reserved`),
			want: "a Secondary names its primary",
		},
		{
			name: "a primary that names a primary",
			spec: fanout(`claim: {operation: o, digest: d, start: "2026-01-02T03:04:05Z", role: Primary, peer: b, target: a, primary: {peer: a, uid: u}}, stage: Reserved`),
			want: "a Secondary names its primary",
		},

		{name: "nothing changes", old: reserved, spec: reserved},
		{name: "another claim", old: reserved, spec: fanout(stranger + ", stage: Reserved"), want: "held for peer a by operation op-1"},
		{name: "fanout dropped", old: reserved, spec: "{}", want: "claim cannot be removed"},
		{name: "spec dropped", old: reserved, spec: "absent", want: "claim cannot be removed"},

		{name: "from Reserved to Removing", old: reserved, spec: removing},
		{name: "from Removing to Reserved", old: removing, spec: reserved, want: "stage cannot go from Removing to Reserved"},
		{name: "from " + k.committed + " to Reserved", old: fanout(primary + ", stage: " + k.committed), spec: reserved, want: "stage cannot go from " + k.committed + " to Reserved"},
		{name: "from " + k.committed + " to Removing", old: fanout(primary + ", stage: " + k.committed), spec: removing},

		{name: "heartbeat begins", old: reserved, spec: fanout(primary + ", stage: Reserved, heartbeat: 1")},
		{name: "heartbeat rises", old: fanout(primary + ", stage: Reserved, heartbeat: 1"), spec: fanout(primary + ", stage: Reserved, heartbeat: 2")},
		{name: "heartbeat falls", old: fanout(primary + ", stage: Reserved, heartbeat: 2"), spec: fanout(primary + ", stage: Reserved, heartbeat: 1"), want: "heartbeat cannot fall"},
		{name: "heartbeat dropped", old: fanout(primary + ", stage: Reserved, heartbeat: 2"), spec: reserved, want: "heartbeat cannot fall"},

		{name: "removal before Removing", old: reserved, spec: fanout(primary + ", stage: Reserved, " + removal), want: "removal goes with stage Removing"},
		{name: "Removing without removal", old: reserved, spec: fanout(primary + ", stage: Removing"), want: "removal goes with stage Removing"},
		{
			name: "another removal", old: removing,
			spec: fanout(primary + `, stage: Removing, removal: {operation: op-8, start: "2026-01-03T03:04:05.000000Z"}`),
			want: "removal cannot be changed",
		},

		{name: "revision rises", old: fanout(primary + ", stage: Reserved, revision: {number: 1, operation: op-1}"), spec: fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-2}")},
		{name: "revision falls", old: fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-1}"), spec: fanout(primary + ", stage: Reserved, revision: {number: 1, operation: op-1}"), want: "revision.number cannot fall"},
		{name: "revision dropped", old: fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-1}"), spec: reserved, want: "revision.number cannot fall"},
		{
			name: "another operation under the same number",
			old:  fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-1}"), spec: fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-2}"),
			want: "revision cannot be changed under the same number",
		},
		{
			name: "another digest under the same number",
			old:  fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-1, digest: d1}"), spec: fanout(primary + ", stage: Reserved, revision: {number: 2, operation: op-1, digest: d2}"),
			want: "revision cannot be changed under the same number",
		},

		{name: "a primary learns its own UID", old: fanout(primary + ", stage: Reserved, home: {peer: a, term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}")},
		{name: "an empty UID is filled in", old: fanout(primary + ", stage: Reserved, home: {peer: a, uid: '', term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}")},
		{name: "another UID in the same term", old: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u2, term: 1}"), want: "home cannot be changed within a term"},
		{name: "the UID forgotten", old: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: a, term: 1}"), want: "home cannot be changed within a term"},
		{name: "another peer in the same term", old: fanout(primary + ", stage: Reserved, home: {peer: a, term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: b, term: 1}"), want: "home cannot be changed within a term"},
		{name: "a move", old: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}"), spec: fanout(primary + ", stage: Reserved, home: {peer: b, uid: u2, term: 2, yielded: true}")},
		{name: "the end of a move", old: fanout(primary + ", stage: Reserved, home: {peer: b, uid: u2, term: 2, yielded: true}"), spec: fanout(primary + ", stage: Reserved, home: {peer: b, uid: u2, term: 2}")},
		{name: "the term falls", old: fanout(primary + ", stage: Reserved, home: {peer: b, uid: u2, term: 2}"), spec: fanout(primary + ", stage: Reserved, home: {peer: a, uid: u1, term: 1}"), want: "home.term cannot fall"},
		{name: "home dropped", old: fanout(primary + ", stage: Reserved, home: {peer: b, uid: u2, term: 2}"), spec: reserved, want: "home.term cannot fall"},

		{name: "adoption as a reservation", old: "{}", spec: reserved, want: "adopted as a Primary and " + k.committed + " at once"},
		{name: "adoption as a secondary", old: "{}", spec: fanout(secondary + ", stage: " + k.committed), want: "adopted as a Primary and " + k.committed + " at once"},
		{name: "adoption of an object without spec", old: "absent", spec: reserved, want: "adopted as a Primary and " + k.committed + " at once"},
	}
}
