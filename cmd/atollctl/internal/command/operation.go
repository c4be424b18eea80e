// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
)

// change holds the common flags of commands that change an object.
type change struct {
	key         string
	unreachable string
}

var unreachableModes = map[string]fanout.Unreachable{"fail": fanout.Fail, "wait": fanout.Wait, "forward": fanout.Forward}

func (o *change) flags(c *cobra.Command, modes ...string) {
	c.Flags().StringVar(&o.key, "idempotency-key", "", "repeating the command with the same `key` returns the result of the first run")
	c.Flags().StringVar(&o.unreachable, "unreachable", "fail", "how to treat an unreachable peer: "+strings.Join(modes, ", "))
	_ = c.RegisterFlagCompletionFunc("unreachable", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
}

// mode returns the value of --unreachable.
func (o *change) mode(modes ...string) (fanout.Unreachable, error) {
	for _, m := range modes {
		if o.unreachable == m {
			return unreachableModes[m], nil
		}
	}
	return fanout.Fail, badInput("use one of "+strings.Join(modes, ", "), "--unreachable %q is not known", o.unreachable)
}

var (
	addModes    = []string{"fail", "wait"}
	removeModes = []string{"fail", "wait", "forward"}
)

// subject is the object of an operation.
type subject struct {
	kind fanout.Kind
	key  types.NamespacedName
}

// printOperation prints the result of op, and a warning for each peer that has not confirmed op. It
// returns an error if op waits until other controllers remove their finalizers.
func (s *session) printOperation(about subject, op *fanout.Operation) error {
	s.warnPending(op)
	if s.output == formatName {
		gk := about.kind.GroupKind()
		_, err := fmt.Fprintf(s.out, "%s.%s/%s\n", strings.ToLower(gk.Kind), gk.Group, about.key.Name)
		return errors.Join(err, s.finalizers(op))
	}
	it := operationItem(op)
	it.object.Object["object"] = map[string]any{
		"group": about.kind.Resource.Group, "kind": about.kind.Kind,
		"namespace": about.key.Namespace, "name": about.key.Name,
	}
	it.cells = append([]any{about.kind.Kind, or(about.key.Namespace), about.key.Name}, it.cells...)
	err := s.print(listing{
		columns: append([]string{"Kind", "Namespace", "Name"}, operationColumns...),
		items:   []item{it},
		single:  true,
	})
	return errors.Join(err, s.finalizers(op))
}

// finalizers returns an error that names the finalizers of other controllers for which op waits,
// and the peers of these finalizers. It returns nil if op waits for no finalizer.
func (s *session) finalizers(op *fanout.Operation) error {
	var peers []string
	for o := range op.Peers.All() {
		if held, ok := find[*fanout.FinalizerError](o.Err); ok {
			peers = append(peers, fmt.Sprintf("%s in peer %s", strings.Join(held.Finalizers, ", "), o.Peer))
		}
	}
	if len(peers) == 0 {
		return nil
	}
	return &problem{
		code:   exitDoubt,
		remedy: fmt.Sprintf("have their controllers remove them, then run %q", s.program+" operation resume "+op.ID),
		err:    fmt.Errorf("operation %s is committed and waits for finalizers: %s", op.ID, strings.Join(peers, "; ")),
	}
}

var operationColumns = []string{"Operation", "State", "Primary", "Revision", "Peers"}

func operationItem(op *fanout.Operation) item {
	var states []string
	var peers []any
	for o := range op.Peers.All() {
		state, peer := string(o.Value), map[string]any{"peer": string(o.Peer)}
		if o.Err != nil {
			state = string(fanout.PeerPending)
			peer["error"] = oneLine(o.Err)
		}
		peer["state"] = state
		states = append(states, string(o.Peer)+"="+state)
		peers = append(peers, peer)
	}
	revision := "-"
	fields := map[string]any{
		"state": string(op.State), "primary": string(op.Primary), "alreadyDone": op.AlreadyDone, "peers": peers,
	}
	if op.Revision > 0 {
		revision = fmt.Sprint(op.Revision)
		fields["revision"] = op.Revision
	}
	if op.UID != "" {
		fields["uid"] = string(op.UID)
	}
	return item{
		cells:  []any{op.ID, string(op.State), or(string(op.Primary)), revision, or(strings.Join(states, ","))},
		object: object("Operation", op.ID, fields),
	}
}

// warnPending prints a warning for each peer that has not confirmed a committed operation, and for
// each peer that may hold a reservation of an aborted operation. It also warns if an earlier
// operation had the same effect.
func (s *session) warnPending(op *fanout.Operation) {
	if op.AlreadyDone {
		s.warn("an earlier operation had the same effect; nothing was changed")
	}
	owes := "has yet to confirm"
	switch op.State {
	case fanout.Done:
		return
	case fanout.Aborted, fanout.Ended:
		owes = "may hold a reservation of it, which has no effect; the next recovery or sweep that reaches the peer deletes it"
	}
	for o := range op.Peers.All() {
		if o.Err != nil || o.Value == fanout.PeerPending {
			reason := ""
			if o.Err != nil {
				reason = ": " + oneLine(o.Err)
			}
			s.warn("operation %s is %s; peer %s %s%s", op.ID, strings.ToLower(string(op.State)), o.Peer, owes, reason)
		}
	}
}

// began formats the time at which something began; "-" if it is unknown.
func began(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
