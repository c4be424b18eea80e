// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// manifest returns the spec of o as coordinators write it.
func manifest(mode Mode, o Object) map[string]any {
	spec := map[string]any{}
	switch {
	case o.Payload == "":
	case mode == Everywhere:
		spec["metadata"] = map[string]any{"displayName": o.Payload}
	default:
		spec["kubeconfigSecret"] = map[string]any{"name": o.Payload}
	}
	if !o.Claimed {
		return spec
	}
	const start = "2026-01-02T03:04:05.000000Z"
	role := "Secondary"
	if o.Claim.Primary {
		role = "Primary"
	}
	claim := map[string]any{
		"operation": o.Claim.Operation, "digest": o.Claim.Digest, "start": start, "role": role, "peer": o.Claim.Peer, "target": o.Claim.Target,
	}
	if o.Claim.Of != (Ref{}) {
		claim["primary"] = map[string]any{"peer": o.Claim.Of.Peer, "uid": o.Claim.Of.UID}
	}
	if o.Claim.Record != "" {
		claim["record"] = o.Claim.Record
	}
	f := map[string]any{"claim": claim, "stage": string(o.Stage)}
	if o.Heartbeat != 0 {
		f["heartbeat"] = o.Heartbeat
	}
	if o.Bound != (Ref{}) {
		f["bound"] = map[string]any{"peer": o.Bound.Peer, "uid": o.Bound.UID}
	}
	if o.Removal != "" {
		f["removal"] = map[string]any{"operation": o.Removal, "start": start}
	}
	if o.Revision != (Revision{}) {
		f["revision"] = map[string]any{"number": o.Revision.Number, "operation": o.Revision.Operation, "digest": o.Revision.Digest}
	}
	if o.Home.Term > 0 {
		f["home"] = map[string]any{"peer": o.Home.Peer, "uid": o.Home.UID, "term": o.Home.Term, "yielded": o.Home.Yielded}
	}
	spec["fanout"] = f
	return spec
}

// starts returns the objects whose changes the test judges: an object without a claim, and the
// primaries and secondaries that the protocol writes, in their stages.
func starts(mode Mode) []Object {
	primary := Object{Claimed: true, Stage: Reserved, Heartbeat: 1, Payload: "p", Claim: Claim{Operation: "x", Digest: "d", Primary: true, Peer: "a", Target: "a"}}
	secondary := primary
	secondary.Claim.Primary, secondary.Claim.Peer, secondary.Claim.Of = false, "a", Ref{"b", "u2"}
	secondary.Claim.Target = "b"
	claim := secondary
	claim.Claim.Of, claim.Claim.Record = Ref{}, "r"
	bound := claim
	bound.Bound = Ref{"b", "u2"}
	committed, removed := primary, primary
	committed.Stage = Configured
	if mode == Once {
		secondary.Payload, claim.Payload, bound.Payload = "", "", ""
		removed.Stage, removed.Removal = Removing, "s"
		return []Object{{Payload: "p"}, primary, secondary, claim, bound, committed, removed}
	}
	for _, o := range []*Object{&primary, &secondary, &claim, &bound, &committed, &removed} {
		o.Revision = Revision{1, "x", "d"}
	}
	committed.Stage = Active
	committed.Home = Home{Ref: Ref{"a", "u1"}, Term: 1}
	replica, moved, frozen, yielded := secondary, secondary, secondary, committed
	replica.Stage = Active
	moved.Stage, moved.Home = Active, Home{Ref: Ref{"b", "u2"}, Term: 2}
	frozen.Stage, frozen.Home = Active, Home{Ref: Ref{"b", "u2"}, Term: generation, Yielded: true}
	yielded.Home = Home{Ref: Ref{"b", "u2"}, Term: 2, Yielded: true}
	removed = committed
	removed.Stage, removed.Removal = Removing, "s"
	return []Object{{Payload: "p"}, primary, secondary, claim, bound, committed, replica, moved, frozen, yielded, removed}
}

// edits returns functions that each make one change to an object.
func edits() []func(*Object) {
	var all []func(*Object)
	set := func(f func(*Object)) { all = append(all, f) }
	for _, s := range []Stage{Reserved, Configured, Active, Decided, Removing} {
		set(func(o *Object) { o.Stage = s })
	}
	for _, r := range []string{"", "s", "t"} {
		set(func(o *Object) { o.Removal = r })
	}
	for n := range int64(4) {
		set(func(o *Object) { o.Heartbeat = n })
	}
	for _, r := range []Revision{{}, {1, "x", "d"}, {1, "y", "d"}, {1, "x", "e"}, {2, "y", "e"}, {3, "z", "d"}} {
		set(func(o *Object) { o.Revision = r })
	}
	for _, h := range []Home{
		{}, {Ref: Ref{"a", "u1"}, Term: 1}, {Ref: Ref{"b", "u2"}, Term: 1}, {Ref: Ref{"b", "u2"}, Term: 2}, {Ref: Ref{"a", "u3"}, Term: 2},
		{Ref: Ref{"b", "u2"}, Term: 2, Yielded: true}, {Ref: Ref{"a", "u1"}, Term: generation, Yielded: true},
	} {
		set(func(o *Object) { o.Home = h })
	}
	for _, p := range []string{"", "p", "q"} {
		set(func(o *Object) { o.Payload = p })
	}
	for _, b := range []Ref{{}, {"b", "u2"}, {"b", "u4"}} {
		set(func(o *Object) { o.Bound = b })
	}
	set(func(o *Object) { o.Claim.Operation = "y" })
	set(func(o *Object) { o.Claim.Peer = "b" })
	set(func(o *Object) { o.Claim.Of = Ref{"b", "u9"} })
	set(func(o *Object) { o.Claim.Primary, o.Claim.Of, o.Claim.Record = true, Ref{}, "" })
	set(func(o *Object) { *o = Object{Payload: o.Payload} })
	set(func(o *Object) {
		o.Claimed, o.Stage = true, Configured
		o.Claim = Claim{Operation: "w", Digest: "d", Primary: true, Peer: "a", Target: "a"}
	})
	set(func(o *Object) {
		o.Claimed, o.Stage = true, Active
		o.Claim = Claim{Operation: "w", Digest: "d", Primary: true, Peer: "a", Target: "a"}
	})
	return all
}
