// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// Report is the result of Audit.
type Report struct {
	// Objects is how many objects of the Coordinator's kinds were read.
	Objects int
	// Violations are the findings: first those about the identity of peers, then the others by
	// kind and object, and last those about the owners of namespaces. With repair, Audit repairs
	// only those of ClassRepair; AuditObject also repairs those of ClassConflict that a sweep can
	// decide.
	Violations []Violation
	// Pending is work in progress, which violates nothing: reservations that are alive or whose
	// operation is open in the Coordinator's log, replicas that are stale or not ready, removals and
	// changes of the membership under way. The Text of a reservation without a sign of life names the
	// command to run.
	Pending []Violation
	// Repaired are the findings that the audit repaired.
	Repaired []Violation
	// Refused is why a requested repair was not started, or ended early: a peer is the wrong cluster,
	// so the objects in the other peers cannot be judged. It wraps ErrWrongPeer.
	Refused error
	// Unread lists all peers. Err is set for a peer that could not be read, whose objects were
	// not judged.
	Unread region.Results[struct{}]
}

// Violation is one finding of an audit.
type Violation struct {
	// Invariant is "I1" to "I13" of docs/fanout-specification.md, "identity" (the peer may be the
	// wrong cluster), "claim" (the object's claim cannot be read), "owner" (the namespace has no
	// owner), "lost" (an object proves a commit, and its primary is missing), "conflict" (a
	// replica contradicts its primary, because a peer was restored), or work in progress: "guard"
	// (a guard is not bound yet), "replica", "activation", "move", "removal", "edit", "adoption",
	// "membership", or "held" (a requested deletion that is not committed).
	Invariant string
	Peer      region.PeerName
	Kind      schema.GroupKind
	Key       types.NamespacedName
	UID       types.UID
	// Text describes the violation.
	Text string
	// Class is the kind of repair that the violation needs. Mend is the command to run: it repairs
	// the violation, or shows its cause.
	Class Class
	Mend  string
}

// Audit reads all peers and reports the objects and PeerSets that violate an invariant of
// docs/fanout-specification.md. It confirms each finding by a second read, so that it does not
// report the steps of a running operation as violations. It watches reservations, and leftovers of
// reservations, for one lease (Options.LeaseTimeout): a reservation without a sign of life is a
// violation, unless its operation is open in the log.
//
// With repair, Audit repairs the findings of ClassRepair and ClassInProgress, as a sweep of Start
// does, and reports which of them are repaired. If it could read all peers, it also gives a ring of
// the first release its ID. It repairs no finding of another class. If a peer is the wrong cluster,
// it repairs nothing: see Report.Refused. A peer that cannot be read is not an error: Report.Unread
// names it. Audit blocks and is idempotent.
func (c *Coordinator) Audit(ctx context.Context, repair bool) (*Report, error) {
	return c.inspector.audit(ctx, c.opts.Kinds, repair, []Class{ClassRepair, ClassInProgress}, c.surveyor.survey)
}

// AuditObject audits one object. With repair it also repairs findings of ClassConflict that a
// sweep can decide, because the caller named the object.
func (c *Coordinator) AuditObject(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, repair bool) (*Report, error) {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return c.inspector.audit(ctx, []Kind{kind}, repair, []Class{ClassRepair, ClassInProgress, ClassConflict}, func(ctx context.Context, kind Kind, peers []string) survey {
		return c.surveyor.lookAt(ctx, kind, key, peers)
	})
}

// inspector reports which objects of operations the peers hold, and the faults in these objects.
type inspector struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	kinds    *kinds
	surveyor *surveyor
	executor *executor
	sweeper  *sweeper
}

func (n *inspector) audit(ctx context.Context, kinds []Kind, repair bool, classes []Class, look lookout) (*Report, error) {
	if err := n.executor.tails.wait(ctx); err != nil {
		return nil, err
	}
	peers, err := n.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	unread, lacking := map[string]error{}, false
	surveys := map[schema.GroupResource]survey{}
	if repair {
		report.Refused = n.refuseRepair(ctx, peers)
	}
	for _, kind := range kinds {
		s, findings := n.inspect(ctx, kind, peers, look)
		if _, wrong := identityFindings(peers, s.unread); repair && report.Refused == nil {
			report.Refused = wrong
		}
		if repair && report.Refused == nil {
			before := findings
			// The second inspection finds everything that could not be repaired.
			_, _ = n.sweeper.mendAll(ctx, kind, peers, repairable(before, classes), allObjects, look)
			s, findings = n.inspect(ctx, kind, peers, look)
			report.Repaired = append(report.Repaired, disappeared(before, findings)...)
		}
		surveys[kind.Resource.GroupResource()] = s
		unreadAll(unread, s.unread)
		lacking = lacking || lacksRing(s.sets)
		report.add(s, findings)
	}
	for _, kind := range kinds {
		if owners, ok := surveys[kind.Within.GroupResource()]; ok {
			s := surveys[kind.Resource.GroupResource()]
			report.Violations = append(report.Violations, n.orphans(ctx, s, owners)...)
		}
	}
	if repair && report.Refused == nil && lacking && len(unread) == 0 {
		if err := n.clusters.ensureRing(ctx, peers); err != nil {
			logging.From(ctx).Error(err, "the ring has no ID yet")
		}
	}
	identity, _ := identityFindings(peers, unread)
	report.Violations = append(identity, report.Violations...)
	report.Violations, report.Pending = unique(report.Violations), unique(report.Pending)
	report.Unread = readOf("audit", peers, unread)
	return report, nil
}

// add counts the objects of a survey and adds its findings.
func (r *Report) add(s survey, findings []finding) {
	for _, at := range s.late {
		r.Objects += len(at)
	}
	for _, f := range findings {
		if f.underWay {
			r.Pending = append(r.Pending, f.Violation)
		} else {
			r.Violations = append(r.Violations, f.Violation)
		}
	}
}

// disappeared returns the findings in before that are not in now.
func disappeared(before, now []finding) []Violation {
	var out []Violation
	for _, f := range before {
		if !slices.ContainsFunc(now, func(g finding) bool { return g.Violation == f.Violation }) {
			out = append(out, f.Violation)
		}
	}
	return out
}

// refuseRepair returns an error if a peer is the wrong cluster: then Audit may repair nothing.
func (n *inspector) refuseRepair(ctx context.Context, peers []string) error {
	errs := slices.DeleteFunc(n.clusters.trustAll(ctx, peers), func(err error) bool { return !errors.Is(err, ErrWrongPeer) })
	return errors.Join(errs...)
}

// repairable returns the findings of the given classes.
func repairable(findings []finding, classes []Class) []finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return !slices.Contains(classes, f.Class) })
}

// unique drops repeated findings: differing PeerSets are found once per kind.
func unique(all []Violation) []Violation {
	var out []Violation
	for _, v := range all {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// inspect surveys and examines one kind. If there are findings, it surveys and examines the kind
// again, and drops each violation that only one of the two surveys shows: that survey may have read
// one peer before a step of a running operation, and another peer after the step. If reservations
// are among the findings, inspect waits for one lease before the second survey. No coordinator
// works on a reservation that did not change meanwhile, unless the log has its operation open.
func (n *inspector) inspect(ctx context.Context, kind Kind, peers []string, look lookout) (survey, []finding) {
	s := look(ctx, kind, peers)
	findings := s.examine()
	if len(findings) == 0 {
		return s, nil
	}
	sort := func(all []finding) []finding {
		for i := range all {
			all[i] = all[i].withClassAndCommand()
		}
		return all
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return f.reservation() || f.leftover() }) {
		select {
		case <-time.After(n.opts.LeaseTimeout):
		case <-ctx.Done():
			return s, sort(findings)
		}
	}
	again := look(ctx, kind, peers)
	open := n.entries.openOperations(ctx)
	var confirmed []finding
	for _, f := range again.examine() {
		before := slices.ContainsFunc(findings, func(g finding) bool { return g.Violation == f.Violation })
		was, ok := s.late[f.Key][f.mendAt]
		idle := ok && was.view.UID == f.mend.view.UID && was.view.RV == f.mend.view.RV
		if f, ok := f.confirmed(before, idle, open); ok {
			confirmed = append(confirmed, f)
		}
	}
	return again, sort(confirmed)
}

// confirmed returns a finding of the second survey, with its final text and state. It returns false
// for a violation that the first survey did not have. The parameter before is true if the first
// survey had the finding, and idle if the finding's object has not changed since the first survey.
// open has the IDs of the operations that the log has open.
func (f finding) confirmed(before, idle bool, open map[string]bool) (finding, bool) {
	id := f.mend.view.Claim.Operation
	resume := ": resume it (atollctl operation resume " + id + ")"
	switch {
	case f.reservation() && idle && open[id]:
		f.open = id
		f.Text += ": it shows no sign of life, and the log has it open" + resume
	case f.reservation() && idle:
		f.underWay = false
		f.Text = "a reservation of dead " + f.Text + ": sweep it (atollctl audit --repair), or abort it (atollctl operation abort " + id + " --others)"
	case f.leftover() && open[id]:
		f.underWay, f.open = true, id
		f.Text += ", and the log has the operation open" + resume
	case !f.underWay && !before:
		return f, false
	}
	return f, true
}

// leftover reports whether the finding is about a Reserved secondary whose primary is gone.
func (f finding) leftover() bool {
	return f.Invariant == "I6" && f.mend.obj != nil && !f.mend.view.Claim.Primary && f.mend.view.Stage == protocol.Reserved
}

// reservation reports whether the finding is about a primary that is not committed.
func (f finding) reservation() bool {
	return f.underWay && f.Invariant == "I6" && f.mend.view.Stage == protocol.Reserved
}
