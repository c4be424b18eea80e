// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/wal"
)

func (s *session) walBackup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of the log",
		Long: `Write a copy of the log to a file that does not exist yet. The copy is a log of
its own: never use both for the same work at once.`,
		Args: cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			to, err := filepath.Abs(args[0])
			if err != nil {
				return badInput("", "backup: %w", err)
			}
			return s.read(ctx, func(file *wal.File, _ string) error {
				if err := file.Backup(ctx, to); err != nil {
					return badInput("", "%w", err)
				}
				return s.print(logState(to, "Written", nil))
			})
		}),
	}
}

func (s *session) walCompact() *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Compact the log",
		Long: `Compact the log to the space that it needs, and restore damaged idempotency keys from
their entries. A log of more than 8 MiB that is mostly
empty is compacted whenever a command opens it.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			var done wal.CompactEvent
			opts := wal.Options{CompactAbove: -1, Observer: &wal.Observer{Compacted: func(e wal.CompactEvent) { done = e }}}
			return s.readWith(ctx, opts, func(file *wal.File, path string) error {
				if err := file.Compact(ctx); err != nil {
					return err
				}
				return s.print(logState(path, "Compacted", map[string]any{"bytesBefore": done.Before, "bytesAfter": done.After}))
			})
		}),
	}
}

func (s *session) walDiscard() *cobra.Command {
	return &cobra.Command{
		Use:   "discard OPERATION",
		Short: "Remove a damaged entry",
		Long: `Remove a damaged entry. Then only the peers show its operation: run audit afterwards,
which finds the leftovers. A readable entry is never discarded: wal recover finishes
it.`,
		Args: cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.read(ctx, func(file *wal.File, _ string) error {
				err := file.Discard(ctx, args[0])
				switch {
				case is(err, wal.ErrNotDamaged):
					return badInput(fmt.Sprintf("finish it with %q", s.program+" wal recover"), "%w", err)
				case is(err, wal.ErrNotFound):
					return badInput(fmt.Sprintf("see %q", s.program+" wal list"), "%w", err)
				case err != nil:
					return err
				}
				s.warn("the log no longer has operation %s: %s", args[0], s.mend())
				return s.print(listing{
					columns: []string{"Operation", "State"},
					items:   []item{{cells: []any{args[0], "Discarded"}, object: object("LogEntry", args[0], map[string]any{"state": "Discarded"})}},
					single:  true,
				})
			})
		}),
	}
}

func (s *session) walSalvage() *cobra.Command {
	return &cobra.Command{
		Use:   "salvage FILE",
		Short: "Make a new log from the readable part of a damaged one",
		Long: `Make a new log from the readable part of a damaged one, which is not changed. --wal
names the new log; it must not exist. Without --wal the new log replaces a default log
that was set aside. Warnings list the lost entries. Then run wal recover, and audit
--repair for the lost operations.`,
		Args: cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			from, err := filepath.Abs(args[0])
			if err != nil {
				return badInput("", "salvage: %w", err)
			}
			to := s.wal
			if to == "" {
				place, err := s.logs()
				if err != nil {
					return err
				}
				to = place.salvaged(from)
			}
			result, err := wal.Salvage(ctx, from, to)
			if err != nil {
				return badInput("", "%w", err)
			}
			for _, damage := range result.Damage {
				s.warn("%v", damage)
			}
			if err := s.print(logState(to, "Salvaged", map[string]any{"open": result.Open, "ended": result.Ended})); err != nil {
				return err
			}
			if len(result.Damage) > 0 {
				return &problem{code: exitFailed, err: fmt.Errorf("%s was damaged", from),
					remedy: fmt.Sprintf("run %q and then %q", s.program+" wal recover", s.program+" audit --repair")}
			}
			return nil
		}),
	}
}

// logState returns the listing with the path, the state and the figures of a log.
func logState(path, state string, figures map[string]any) listing {
	l := listing{columns: []string{"Log", "State"}, single: true}
	fields := map[string]any{"state": state}
	cells := []any{path, state}
	for _, name := range []string{"bytesBefore", "bytesAfter", "open", "ended"} {
		if n, ok := figures[name]; ok {
			fields[name] = n
			cells = append(cells, n)
			l.columns = append(l.columns, map[string]string{
				"bytesBefore": "Bytes Before", "bytesAfter": "Bytes After", "open": "Open", "ended": "Ended",
			}[name])
		}
	}
	l.items = []item{{cells: cells, object: object("Log", path, fields)}}
	return l
}
