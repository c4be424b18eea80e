// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) audit() *cobra.Command {
	var repair bool
	var only string
	c := &cobra.Command{
		Use:   "audit",
		Short: "Read all peers and print every violation of the protocol's invariants",
		Long: `Read all peers and print every violation of the protocol's invariants, sorted by
class, each with the command that repairs exactly it:

  Repair      a sweep repairs it, and so does --repair
  Identity    a peer is not the cluster that the ring knows, or may not be
  Restored    a peer was restored from an older state
  Conflict    a person must decide
  InProgress  no violation: it ends by itself, such as a reservation in use

--repair repairs the first class, continues the last one and changes no other. While a
peer is the wrong cluster it repairs nothing.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			var about subject
			if only != "" {
				named, one, err := named(only)
				if err == nil && !one {
					err = badInput("write servicecluster/ACCOUNT/NAME or account/NAME", "--only %s names no object", only)
				}
				if err != nil {
					return err
				}
				about = named
			}
			with := s.observe
			if repair {
				with = s.coordinate
			}
			return with(ctx, func(c *fanout.Coordinator) error {
				var report *fanout.Report
				var err error
				if only != "" {
					report, err = c.AuditObject(ctx, about.kind.GroupKind(), about.key, repair)
				} else {
					report, err = c.Audit(ctx, repair)
				}
				if err != nil {
					return err
				}
				err, differ := s.printReport(report), s.allNamed(ctx)
				if found, ok := find[*problem](differ); ok && err != nil {
					// Peers that the flags do not name can cause these violations.
					s.warn("%v; %s", found.err, found.remedy)
					return err
				}
				return errors.Join(err, differ)
			})
		}),
	}
	c.Flags().BoolVar(&repair, "repair", false, "repair the violations that a sweep can repair")
	c.Flags().StringVar(&only, "only", "", "audit one object: servicecluster/ACCOUNT/NAME or account/NAME")
	return c
}

func (s *session) printReport(r *fanout.Report) error {
	l := listing{columns: []string{"Finding", "Invariant", "Peer", "Kind", "Namespace", "Name", "Text", "Class", "Mend"}}
	classes := map[fanout.Class]int{}
	for _, part := range []struct {
		finding string
		list    []fanout.Violation
	}{{"Violation", r.Violations}, {"Repaired", r.Repaired}, {"Pending", r.Pending}} {
		for _, v := range part.list {
			l.items = append(l.items, violationItem(part.finding, v))
			if part.finding == "Violation" {
				classes[v.Class]++
			}
		}
	}
	if len(l.items) > 0 || s.output != formatTable {
		if err := s.print(l); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.errOut, "%d objects read, %d violations, %d repaired, %d pending\n",
		r.Objects, len(r.Violations), len(r.Repaired), len(r.Pending))
	unread := s.unread(r.Unread.Err())
	if r.Refused != nil {
		return &problem{code: exitInput, remedy: "correct the credentials of the peer first", err: fmt.Errorf("nothing was repaired: %w", r.Refused)}
	}
	if classes[fanout.ClassIdentity] > 0 && wrongPeers(r) {
		if n := len(r.Violations) - classes[fanout.ClassIdentity]; n > 0 {
			s.warn("%d further violations may be mere consequences of this", n)
		}
		return unread
	}
	if len(r.Violations) > 0 {
		if unread != nil {
			s.warn("%v", unread)
		}
		remedy := fmt.Sprintf("run %q", s.program+" audit --repair")
		if left := len(r.Violations) - classes[fanout.ClassRepair]; left > 0 {
			remedy = "each of them names the command that repairs it"
		}
		return &problem{code: exitViolations, remedy: remedy, err: fmt.Errorf("%d violations", len(r.Violations))}
	}
	return unread
}

// wrongPeers reports whether the audit could not read some peer, because that peer is the wrong
// cluster or has an unknown identity. The user must then correct credentials or rights.
func wrongPeers(r *fanout.Report) bool {
	for o := range r.Unread.All() {
		if is(o.Err, fanout.ErrWrongPeer) || is(o.Err, region.ErrIdentityUnknown) {
			return true
		}
	}
	return false
}

func violationItem(finding string, v fanout.Violation) item {
	if finding == "Repaired" {
		v.Mend = ""
	}
	return item{
		cells: []any{finding, or(v.Invariant), or(string(v.Peer)), or(v.Kind.Kind), or(v.Key.Namespace), or(v.Key.Name), v.Text, string(v.Class), or(v.Mend)},
		object: object("Finding", v.Key.Name, map[string]any{
			"finding": finding, "class": string(v.Class), "mend": v.Mend, "invariant": v.Invariant, "peer": string(v.Peer), "text": v.Text,
			"object": map[string]any{
				"group": v.Kind.Group, "kind": v.Kind.Kind, "namespace": v.Key.Namespace, "name": v.Key.Name, "uid": string(v.UID),
			},
		}),
	}
}
