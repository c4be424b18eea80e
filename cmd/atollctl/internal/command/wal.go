// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

func (s *session) walCommand() *cobra.Command {
	c := &cobra.Command{Use: "wal", Short: "Inspect the log of operations, and finish its operations"}
	c.AddCommand(
		s.walList(), s.walRecover(), s.walRescue(), s.walVerify(),
		s.walBackup(), s.walCompact(), s.walDiscard(), s.walSalvage(),
	)
	return c
}

func (s *session) walList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the operations that are not finished",
		Long: `List the operations that are not finished. An aborted operation stays for some
minutes if a peer may still apply one of its requests, so that a late one is noticed.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			return s.readOpen(ctx, func(log wal.Log) error {
				l := listing{columns: []string{"Operation", "Action", "Kind", "Namespace", "Name", "Primary", "State", "Began", "Owner"}}
				var damaged []string
				for e, err := range log.Open(ctx) {
					if corrupt, ok := find[*wal.CorruptError](err); ok {
						damaged = append(damaged, or(corrupt.ID))
						l.items = append(l.items, entryItem(wal.Entry{ID: corrupt.ID, Key: corrupt.Key, State: "Damaged"}))
						continue
					}
					if err != nil {
						return err
					}
					l.items = append(l.items, entryItem(e))
				}
				if len(l.items) == 0 && s.output == formatTable {
					fmt.Fprintln(s.errOut, "no open operations")
					return nil
				}
				if err := s.print(l); err != nil {
					return err
				}
				if len(damaged) > 0 {
					return &problem{code: exitFailed, remedy: s.discard(),
						err: fmt.Errorf("damaged entries: %s", strings.Join(damaged, ", "))}
				}
				return nil
			})
		}),
	}
}

// discard returns the remedy for damaged entries.
func (s *session) discard() string {
	return fmt.Sprintf("discard each with %q, then %s", s.program+" wal discard OPERATION", s.mend())
}

// mend returns the remedy for operations that the log has lost.
func (s *session) mend() string { return fmt.Sprintf("run %q", s.program+" audit --repair") }

func entryItem(e wal.Entry) item {
	// An entry without a readable description is listed as well.
	about, _ := fanout.Describe(e)
	return item{
		cells: []any{
			or(e.ID), or(about.Action), or(about.Kind.Kind), or(about.Key.Namespace), or(about.Key.Name),
			or(string(about.Primary)), or(e.State), began(e.Began), or(e.Owner),
		},
		object: object("LogEntry", e.ID, map[string]any{
			"action": about.Action, "primary": string(about.Primary), "state": e.State,
			"began": began(e.Began), "owner": e.Owner, "key": e.Key,
			"object": map[string]any{
				"group": about.Kind.Group, "kind": about.Kind.Kind, "namespace": about.Key.Namespace, "name": about.Key.Name,
			},
		}),
	}
}

func (s *session) walRecover() *cobra.Command {
	var acceptLoss, thisRing bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "Finish or abort the operations that earlier runs left open",
		Long: `Finish or abort the operations that earlier runs left open. Without a log there is
nothing to do; a warning says so, in case another log was meant.

Operations of the first release do not record their ring. They are settled if the peers
show them, or if they are in effect nowhere; otherwise the log is refused. --this-ring
declares that they belong to this ring.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			l := listing{columns: operationColumns}
			err := s.coordinateWith(ctx, acceptLoss, wal.Options{AcceptLoss: acceptLoss}, func(c *fanout.Coordinator) error {
				if thisRing {
					if err := s.signLog(ctx, c); err != nil {
						return err
					}
				}
				return s.settle(ctx, c, &l)
			})
			if _, unknown := find[*unknownRingError](err); unknown {
				return &problem{code: exitDoubt, remedy: "run it again once a peer answers, or name the log with --wal", err: err}
			}
			if !is(err, errNoSuchLog) || s.named() {
				return err
			}
			s.warn("%v, so it has no open operations", err)
			if s.output == formatTable {
				return nil
			}
			return s.print(l)
		}),
	}
	c.Flags().BoolVar(&thisRing, "this-ring", false, "treat operations of the first release, which do not record their ring, as this ring's")
	c.Flags().BoolVar(&acceptLoss, "accept-loss", false, "begin an empty log after a damaged one was set aside; then run audit --repair")
	return c
}

// signLog declares that the operations of the first release belong to this ring.
func (s *session) signLog(ctx context.Context, c *fanout.Coordinator) error {
	signed, err := c.Identity().SignLog(ctx)
	for _, id := range signed {
		s.warn("operation %s of the first release is treated as one of this ring", id)
	}
	return err
}

// settle finishes or aborts the open operations, adds each to l, and prints l.
func (s *session) settle(ctx context.Context, c *fanout.Coordinator, l *listing) error {
	ops, err := c.Recover(ctx)
	var doubtful []string
	var waiting []error
	for _, op := range ops {
		l.items = append(l.items, operationItem(op))
		s.warnPending(op)
		waiting = append(waiting, s.finalizers(op))
		if op.State == fanout.InDoubt {
			doubtful = append(doubtful, op.ID)
		}
	}
	if len(ops) == 0 && s.output == formatTable {
		fmt.Fprintln(s.errOut, "no open operations to settle")
	} else if err := s.print(*l); err != nil {
		return err
	}
	switch {
	case err != nil:
		return err
	case len(doubtful) > 0:
		return &problem{code: exitDoubt, remedy: "run it again once all peers answer",
			err: fmt.Errorf("in doubt: %s", strings.Join(doubtful, ", "))}
	}
	return errors.Join(waiting...)
}

func (s *session) walVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check every record and page of the log",
		Args:  cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			return s.read(ctx, func(file *wal.File, path string) error {
				if err := file.Verify(ctx); err != nil {
					return &problem{code: exitFailed, remedy: s.discard(), err: err}
				}
				return s.print(logState(path, "Sound", nil))
			})
		}),
	}
}

// readOpen runs f with the existing log, in a file or in a central plane.
func (s *session) readOpen(ctx context.Context, f func(wal.Log) error) error {
	if s.shared == "" {
		return s.read(ctx, func(file *wal.File, _ string) error { return f(file) })
	}
	log, err := s.openCentral()
	if err != nil {
		return err
	}
	return f(log)
}

// read runs f with the existing log file and the path of the file.
func (s *session) read(ctx context.Context, f func(*wal.File, string) error) error {
	return s.readWith(ctx, wal.Options{}, f)
}

func (s *session) readWith(ctx context.Context, opts wal.Options, f func(*wal.File, string) error) (err error) {
	if err := s.ofFile(); err != nil {
		return err
	}
	path, err := s.found(ctx)
	if err != nil {
		return err
	}
	file, err := s.openAt(path, false, opts)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	return f(file, path)
}
