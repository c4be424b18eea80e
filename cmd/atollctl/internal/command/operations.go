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
		Short:   "List, explain, resume and abort operations of all coordinators",
	}
	c.AddCommand(s.listOperations(), s.explainOperation(), s.resumeOperation(), s.abortOperation())
	return c
}

func (s *session) listOperations() *cobra.Command {
	var inPeers bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the operations that are not over",
		Long: `List the open operations: those of the log, and with --peers also those that the peers
show, of all coordinators: reservations, removals in progress, objects that not every
peer has, and leftovers of lost operations. Operations that are still running are
included.`,
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
				err = nil // open operations are also read from the peers, below
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
	c.Flags().BoolVar(&inPeers, "peers", false, "also list the operations that the peers show")
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
		Short: "Settle one operation now: finish or abort it",
		Long: `Settle one operation now. An operation of the log is finished or aborted, as "wal
recover" does. One that only the peers show is settled as by "audit --repair": a
reservation without a heartbeat for one lease is deleted, and a committed operation is
finished.`,
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
		Short: "Abort an operation that is not committed",
		Long: `Abort an operation that is not committed: delete its reservations in all peers at once.
An operation of another coordinator is aborted only with --others; without it the error
names the coordinator and the time. A committed operation is refused: only a removal
undoes it.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.logged(ctx, func(c *fanout.Coordinator) error {
				op, err := c.Abort(ctx, args[0], opts)
				return s.settled(op, err)
			})
		}),
	}
	c.Flags().BoolVar(&opts.Others, "others", false, "also abort operations of other coordinators")
	return c
}

// settled prints the state of op, and returns err. If err only reports that op was aborted or has
// ended, settled prints err as a warning instead. If op is nil, or if the coordinator refused to
// settle op, settled prints nothing and returns err.
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

// logged runs f with a Coordinator that has the log, if the log exists. Otherwise the Coordinator
// has no log. It can still explain, resume and abort an operation from the objects in the peers.
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

// named parses KIND/NAMESPACE/NAME, or KIND/NAME for a kind without namespaces. If arg has no
// slash, it may be the ID of an operation, and ok is false.
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
