// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

func (s *session) operationCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "operation",
		Aliases: []string{"operations", "op"},
		Short:   "List, explain, resume and abort operations, whoever began them",
	}
	c.AddCommand(s.listOperations(), s.explainOperation(), s.resumeOperation(), s.abortOperation())
	return c
}

func (s *session) listOperations() *cobra.Command {
	var inPeers bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the operations that are not over",
		Long: `List the operations that are not over: those of the log, and with --peers also
those that the peers show, whoever began them: reservations, removals that go on,
objects that not every peer has, and what is left of operations that are gone.
What is alive and at work is among them.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			l := listing{columns: []string{"Operation", "Action", "Kind", "Namespace", "Name", "Primary", "State", "Began", "Coordinator", "Found"}}
			listed := map[string]bool{}
			err := s.readOpen(ctx, func(log wal.Log) error {
				for e, err := range log.Open(ctx) {
					if corrupt, ok := find[*wal.CorruptError](err); ok {
						s.warn("%v", corrupt)
						continue
					}
					if err != nil {
						return err
					}
					it := entryItem(e)
					it.cells = append(it.cells, "log")
					it.object.Object["found"] = "log"
					listed[e.ID] = true
					l.items = append(l.items, it)
				}
				return nil
			})
			if inPeers && is(err, errNoSuchLog) {
				err = nil // the peers tell what there is
			}
			if err == nil && inPeers {
				err = s.observe(ctx, func(c *fanout.Coordinator) error {
					traces, err := c.Traces(ctx)
					for _, t := range traces {
						if !listed[t.Operation] || t.Operation == "" {
							l.items = append(l.items, traceItem(t))
						}
					}
					return s.unread(err)
				})
			}
			if is(err, errNoSuchLog) {
				return err
			}
			if len(l.items) == 0 && s.output == formatTable {
				fmt.Fprintln(s.errOut, "no open operations")
				return err
			}
			return errors.Join(s.print(l), err)
		}),
	}
	c.Flags().BoolVar(&inPeers, "peers", false, "list those that the peers show, too")
	return c
}

func traceItem(t fanout.Trace) item {
	var behind []any
	for _, p := range t.Peers {
		behind = append(behind, string(p))
	}
	return item{
		cells: []any{
			or(t.Operation), t.Action, t.Kind.Kind, or(t.Key.Namespace), t.Key.Name,
			or(string(t.Primary)), string(t.State), began(t.Since), or(t.Coordinator), "peers",
		},
		object: object("OpenOperation", t.Operation, map[string]any{
			"action": t.Action, "primary": string(t.Primary), "state": string(t.State), "began": began(t.Since),
			"coordinator": t.Coordinator, "found": "peers", "peers": behind,
			"object": map[string]any{"group": t.Kind.Group, "kind": t.Kind.Kind, "namespace": t.Key.Namespace, "name": t.Key.Name},
		}),
	}
}

func (s *session) resumeOperation() *cobra.Command {
	return &cobra.Command{
		Use:   "resume ID",
		Short: "Settle one operation now: finish it, or take it back",
		Long: `Settle one operation now. One of the log is finished or taken back as "wal recover"
does it. One that only the peers show is settled as an audit's repair does it: a
reservation is watched for one lease and taken down if it shows no sign of life;
what is committed goes forward.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.logged(ctx, func(c *fanout.Coordinator) error {
				op, err := c.Resume(ctx, args[0])
				return s.settled(op, err)
			})
		}),
	}
}

func (s *session) abortOperation() *cobra.Command {
	var opts fanout.AbortOptions
	c := &cobra.Command{
		Use:   "abort ID",
		Short: "Take back an operation that is not committed",
		Long: `Take back an operation that is not committed: its reservations go from all peers
at once. One of the log is taken back as it is; what another coordinator reserved
only with --others, and without it the error says who holds it and since when. What
is committed is refused: only a removal undoes it.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.logged(ctx, func(c *fanout.Coordinator) error {
				op, err := c.Abort(ctx, args[0], opts)
				return s.settled(op, err)
			})
		}),
	}
	c.Flags().BoolVar(&opts.Others, "others", false, "take down what another coordinator reserved, too")
	return c
}

// settled prints how an operation stands. That it came to nothing is what was
// asked to find out, not a failure.
func (s *session) settled(op *fanout.Operation, err error) error {
	_, foreign := find[*fanout.ForeignError](err)
	if op == nil || foreign || is(err, fanout.ErrCommitted) {
		return err
	}
	if is(err, fanout.ErrAborted) || is(err, fanout.ErrEnded) {
		s.warn("%s", oneLine(err))
		err = nil
	}
	s.warnPending(op)
	return errors.Join(s.print(listing{columns: operationColumns, items: []item{operationItem(op)}, single: true}), err, s.finalizers(op))
}

// logged runs f with the log if there is one, and otherwise without: what the
// peers show needs none.
func (s *session) logged(ctx context.Context, f func(*fanout.Coordinator) error) error {
	if s.shared == "" {
		found := begun(s.wal)
		if s.wal == "" {
			place, err := s.logs()
			if err != nil {
				return err
			}
			if _, found, err = s.own(ctx, place); err != nil {
				return err
			}
		}
		if !found {
			return s.observe(ctx, f)
		}
	}
	return s.coordinateWith(ctx, false, wal.Options{}, f)
}

// named reads KIND/NAMESPACE/NAME, or KIND/NAME for a kind without namespaces.
func named(arg string) (about subject, ok bool, err error) {
	kindName, rest, ok := strings.Cut(arg, "/")
	if !ok {
		return subject{}, false, nil
	}
	for _, kind := range kinds() {
		if !strings.EqualFold(kindName, kind.Kind) && !strings.EqualFold(kindName, kind.Resource.Resource) {
			continue
		}
		if !kind.Namespaced {
			return subject{kind, types.NamespacedName{Name: rest}}, true, nil
		}
		if namespace, name, ok := strings.Cut(rest, "/"); ok {
			return subject{kind, types.NamespacedName{Namespace: namespace, Name: name}}, true, nil
		}
	}
	return subject{}, false, badInput("write an operation's ID, servicecluster/ACCOUNT/NAME or account/NAME", "%q names no operation and no object", arg)
}
