// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
)

func kinds() []fanout.Kind { return account.Kinds() }

func (s *session) explainOperation() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID | servicecluster/ACCOUNT/NAME | account/NAME",
		Short: "Explain the state of an operation or a name in every peer",
		Long: `Explain the state of an operation or a name. For each peer, print the object there, how
the protocol judges it and by which rule, and what would change it. The operation may
be one of the log or of another coordinator.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			about, ok, err := named(args[0])
			if err != nil {
				return err
			}
			explain := func(c *fanout.Coordinator) error {
				var e *fanout.Explanation
				var err error
				if ok {
					e, err = c.ExplainName(ctx, about.kind.GroupKind(), about.key)
				} else {
					e, err = c.Explain(ctx, args[0])
				}
				if err != nil {
					return err
				}
				return s.printExplanation(e)
			}
			err = s.logged(ctx, explain)
			if busy(err) {
				s.warn("the log is not read: %s", oneLine(err))
				return s.observe(ctx, explain)
			}
			return err
		}),
	}
}

func (s *session) printExplanation(e *fanout.Explanation) error {
	l := listing{columns: []string{"Peer", "Judgement", "Stage", "Operation", "Rule", "Why", "What Would Change It"}}
	var peers []any
	for _, p := range e.Peers {
		why := p.Text
		if p.Err != nil {
			why += ": " + oneLine(p.Err)
		}
		l.items = append(l.items, item{cells: []any{
			string(p.Peer), p.Judgement, or(p.Stage), or(p.Operation), p.Rule, why, p.Next,
		}})
		peer := map[string]any{"peer": string(p.Peer), "judgement": p.Judgement, "rule": p.Rule, "text": p.Text, "next": p.Next}
		for field, value := range map[string]string{
			"uid": string(p.UID), "stage": p.Stage, "role": p.Role, "operation": p.Operation, "coordinator": p.Coordinator,
		} {
			if value != "" {
				peer[field] = value
			}
		}
		if !p.Since.IsZero() {
			peer["since"] = began(p.Since)
		}
		if p.Err != nil {
			peer["error"] = oneLine(p.Err)
		}
		peers = append(peers, peer)
	}
	name := e.Kind.Kind + " " + strings.TrimPrefix(e.Key.String(), "/")
	switch s.output {
	case formatTable:
		s.sentence(name, e)
		return s.print(l)
	case formatName:
		_, err := fmt.Fprintf(s.out, "%s.%s/%s\n", strings.ToLower(e.Kind.Kind), e.Kind.Group, e.Key.Name)
		return err
	}
	fields := map[string]any{
		"action": e.Action, "coordinator": e.Coordinator, "state": string(e.State), "log": e.Log, "text": e.Text, "next": e.Next, "peers": peers,
		"object": map[string]any{"group": e.Kind.Group, "kind": e.Kind.Kind, "namespace": e.Key.Namespace, "name": e.Key.Name},
	}
	if !e.Since.IsZero() {
		fields["since"] = began(e.Since)
	}
	var changes []any
	for _, c := range e.Changes {
		var in []any
		for _, peer := range c.In {
			in = append(in, string(peer))
		}
		changes = append(changes, map[string]any{"id": c.ID, "kind": string(c.Kind), "peer": string(c.Peer), "coordinator": c.Coordinator, "in": in})
	}
	if len(changes) > 0 {
		fields["changes"] = changes
	}
	title := e.Operation
	if title == "" {
		title = e.Key.Name
	}
	return s.print(listing{items: []item{{object: object("Explanation", title, fields)}}, single: true})
}

// sentence prints the operation, the state and the cause of e in a few lines. The table follows
// them.
func (s *session) sentence(name string, e *fanout.Explanation) {
	if e.Operation != "" {
		line := fmt.Sprintf("operation %s: %s %s", e.Operation, or(e.Action), name)
		if e.Coordinator != "" {
			line += " by " + e.Coordinator
		}
		if !e.Since.IsZero() {
			line += " since " + began(e.Since)
		}
		fmt.Fprintln(s.out, line)
	} else {
		fmt.Fprintln(s.out, name)
	}
	if e.State != "" {
		fmt.Fprintf(s.out, "state: %s\n", e.State)
	}
	if e.Log != "" {
		fmt.Fprintf(s.out, "log: %s\n", e.Log)
	}
	for _, c := range e.Changes {
		in := make([]string, len(c.In))
		for i, peer := range c.In {
			in[i] = string(peer)
		}
		fmt.Fprintf(s.out, "membership: %s of %s by %s is under way, in the PeerSet of %s\n", c.Kind, c.Peer, or(c.Coordinator), strings.Join(in, ", "))
	}
	fmt.Fprintf(s.out, "because: %s\nwhat would change it: %s\n", e.Text, e.Next)
}
