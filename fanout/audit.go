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

// Report is what Audit found.
type Report struct {
	// Objects is how many objects of the Coordinator's kinds were read.
	Objects int
	// Violations are the findings, by kind, object and peer. Those of ClassRepair are
	// mended by an audit with repair, the others are not.
	Violations []Violation
	// Pending is work in progress, which is no violation: reservations that are
	// alive or of an operation that the Coordinator's log has open, replicas behind
	// or not ready, removals that go on, changes of the membership. The Text of one
	// that shows no sign of life says what to run.
	Pending []Violation
	// Repaired are the findings that a repair mended.
	Repaired []Violation
	// Refused says why a repair that was asked for was not begun: a peer is the wrong
	// cluster, so what the others hold cannot be judged. It wraps ErrWrongPeer.
	Refused error
	// Unread are the peers, with Err set for one that could not be read: what
	// it holds was not judged.
	Unread region.Results[struct{}]
}

// Violation is one finding of an audit.
type Violation struct {
	// Invariant is the rule's name in docs/fanout.md, "I1" to "I12"; "identity" for a
	// peer that is not, or may not be, the cluster that the ring knows; or what
	// is under way: "replica", "activation", "move", "removal", "edit",
	// "adoption", "membership", "held" for a deletion that is not committed; or
	// "claim" for a claim that cannot be
	// read, "owner" for an object whose namespace nobody owns.
	Invariant string
	Peer      region.PeerName
	Kind      schema.GroupKind
	Key       types.NamespacedName
	UID       types.UID
	// Text says what is wrong.
	Text string
	// Class says what mends it, and Mend is the command that mends exactly this.
	Class Class
	Mend  string
}

// Audit reads all peers and reports every violated invariant of docs/fanout.md.
// What is not as it should be is looked at twice, so that operations at work are
// not taken for violations; a reservation, and what is left of one, is watched for
// one lease and is one if it shows no sign of life, unless the log has its
// operation open. With repair it sweeps what is of ClassRepair or in progress, as
// Start does, and reports what that mended, and gives a ring of the first release its ID;
// the other classes it leaves alone, and all if a peer is the wrong cluster: see
// Report.Refused. A peer that cannot be read makes
// no error: Report.Unread names it. It blocks and is idempotent.
func (c *Coordinator) Audit(ctx context.Context, repair bool) (*Report, error) {
	return c.auditWith(ctx, c.opts.Kinds, repair, []Class{ClassRepair, ClassInProgress}, c.look)
}

// AuditObject is Audit of the object of that kind and name alone. With repair it mends
// what of ClassConflict a sweep can decide, too: it was asked for by name.
func (c *Coordinator) AuditObject(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, repair bool) (*Report, error) {
	kind, err := c.kindFor(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return c.auditWith(ctx, []Kind{kind}, repair, []Class{ClassRepair, ClassInProgress, ClassConflict}, func(ctx context.Context, kind Kind, peers []string) survey {
		return c.lookAt(ctx, kind, key, peers)
	})
}

func (c *Coordinator) auditWith(ctx context.Context, kinds []Kind, repair bool, classes []Class, look lookout) (*Report, error) {
	if err := c.Wait(ctx); err != nil {
		return nil, err
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	unread, lacking := map[string]error{}, false
	surveys := map[schema.GroupResource]survey{}
	if repair {
		report.Refused = c.refuseRepair(ctx, peers)
		repair = report.Refused == nil
	}
	for _, kind := range kinds {
		s, findings := c.inspect(ctx, kind, peers, look)
		if _, wrong := identityFindings(peers, s.unread); repair && wrong != nil {
			report.Refused, repair = wrong, false
		}
		if repair {
			before := findings
			// What could not be mended is found again.
			_, _ = c.mendAll(ctx, kind, peers, repairable(before, classes), everybodys, look)
			s, findings = c.inspect(ctx, kind, peers, look)
			for _, f := range before {
				if !slices.ContainsFunc(findings, func(g finding) bool { return g.Violation == f.Violation }) {
					report.Repaired = append(report.Repaired, f.Violation)
				}
			}
		}
		surveys[kind.Resource.GroupResource()] = s
		unreadAll(unread, s.unread)
		lacking = lacking || lacksRing(s.sets)
		for _, at := range s.late {
			report.Objects += len(at)
		}
		for _, f := range findings {
			if f.underWay {
				report.Pending = append(report.Pending, f.Violation)
			} else {
				report.Violations = append(report.Violations, f.Violation)
			}
		}
	}
	for _, kind := range kinds {
		if owners, ok := surveys[kind.Within.GroupResource()]; ok {
			s := surveys[kind.Resource.GroupResource()]
			report.Violations = append(report.Violations, c.orphans(ctx, s, owners)...)
		}
	}
	if repair && lacking && len(unread) == 0 {
		if err := c.ensureRing(ctx, peers); err != nil {
			logging.From(ctx).Error(err, "the ring has no ID yet")
		}
	}
	identity, _ := identityFindings(peers, unread)
	report.Violations = append(identity, report.Violations...)
	report.Violations, report.Pending = unique(report.Violations), unique(report.Pending)
	report.Unread = readOf("audit", peers, unread)
	return report, nil
}

// refuseRepair says why nothing may be repaired.
func (c *Coordinator) refuseRepair(ctx context.Context, peers []string) error {
	errs := slices.DeleteFunc(c.trustAll(ctx, peers), func(err error) bool { return !errors.Is(err, ErrWrongPeer) })
	return errors.Join(errs...)
}

// repairable are the findings of the classes that a repair may act on.
func repairable(findings []finding, classes []Class) []finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return !slices.Contains(classes, f.Class) })
}

// unique drops repeated findings: that PeerSets differ is found with each kind.
func unique(all []Violation) []Violation {
	var out []Violation
	for _, v := range all {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// inspect surveys and examines one kind. What is not as it should be is looked at
// twice: a violation that is not found again was an operation at work, seen in
// one peer before and in another after a step of it. Reservations are looked at
// one lease apart: one that did not move is dead.
func (c *Coordinator) inspect(ctx context.Context, kind Kind, peers []string, look lookout) (survey, []finding) {
	s := look(ctx, kind, peers)
	findings := s.examine()
	if len(findings) == 0 {
		return s, nil
	}
	sort := func(all []finding) []finding {
		for i := range all {
			all[i] = all[i].sorted()
		}
		return all
	}
	if slices.ContainsFunc(findings, func(f finding) bool { return f.reservation() || f.leftover() }) {
		select {
		case <-time.After(c.opts.LeaseTimeout):
		case <-ctx.Done():
			return s, sort(findings)
		}
	}
	again := look(ctx, kind, peers)
	open := c.openOperations(ctx)
	var confirmed []finding
	for _, f := range again.examine() {
		before := slices.ContainsFunc(findings, func(g finding) bool { return g.Violation == f.Violation })
		was, ok := s.late[f.Key][f.mendAt]
		switch {
		case f.reservation() && ok && was.view.UID == f.mend.view.UID && was.view.RV == f.mend.view.RV:
			id := f.mend.view.Claim.Operation
			if open[id] {
				f.open = id
				f.Text += ": it shows no sign of life, and the log has it open: resume it (atollctl operation resume " + id + ")"
				break
			}
			f.underWay = false
			f.Text = "a reservation of dead " + f.Text + ": sweep it (atollctl audit --repair), or abort it (atollctl operation abort " + id + " --others)"
		case f.leftover() && open[f.mend.view.Claim.Operation]:
			id := f.mend.view.Claim.Operation
			f.underWay, f.open = true, id
			f.Text += ", and the log has the operation open: resume it (atollctl operation resume " + id + ")"
		case !f.underWay && !before:
			continue
		}
		confirmed = append(confirmed, f)
	}
	return again, sort(confirmed)
}

// openOperations are the IDs that the claims of the log's open operations have. A
// log that cannot be read has none.
func (c *Coordinator) openOperations(ctx context.Context) map[string]bool {
	open := map[string]bool{}
	for entry, err := range c.log.Open(ctx) {
		if err != nil {
			continue
		}
		if j, err := decodeJournal(entry); err == nil && j.Change == nil {
			open[j.Operation.ID] = true
		}
	}
	return open
}

// leftover says that the finding is a secondary whose primary is gone.
func (f finding) leftover() bool {
	return f.Invariant == "I6" && f.mend.obj != nil && !f.mend.view.Claim.Primary && f.mend.view.Stage == protocol.Reserved
}

// reservation says that the finding is a primary that is not yet committed.
func (f finding) reservation() bool {
	return f.underWay && f.Invariant == "I6" && f.mend.view.Stage == protocol.Reserved
}
