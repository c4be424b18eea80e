// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/atoll-dev/atoll/fanout"
)

// remove removes all objects of the story and checks that no object is left.
func (s *story) remove(ctx context.Context) error {
	if err := s.removeAll(ctx); err != nil {
		return err
	}
	report, err := s.coordinator.Audit(ctx, false)
	if err != nil {
		return err
	}
	if err := report.Unread.Err(); err != nil {
		return err
	}
	if findings := slices.DeleteFunc(slices.Concat(report.Violations, report.Pending), s.foreign); len(findings) > 0 {
		return fmt.Errorf("audit: %s in peer %s: %s", findings[0].Invariant, findings[0].Peer, findings[0].Text)
	}
	s.out.row("audit", "no violation")
	if err := allSettled(ctx, s.journal); err != nil {
		return err
	}
	s.out.row("log", "empty")
	return nil
}

// foreign reports whether a finding is about an object of another user.
func (s *story) foreign(v fanout.Violation) bool {
	return v.Key.Namespace != s.account && v.Key.Name != s.account
}

// removeAll recovers the logs of killed coordinators, and then removes the objects of the story, the
// newest first. A missing object is not an error.
func (s *story) removeAll(ctx context.Context) error {
	for _, path := range slices.Clone(s.killed) {
		if _, err := s.recoverLog(ctx, path); err != nil {
			return err
		}
	}
	for len(s.added) > 0 {
		o := s.added[len(s.added)-1]
		_, err := s.coordinator.Remove(ctx, o.kind.GroupKind(), o.key, fanout.RemoveOptions{})
		if err != nil && !errors.Is(err, fanout.ErrNotFound) {
			return err
		}
		s.added = s.added[:len(s.added)-1]
		s.out.row(o, "removed from "+s.ring.String())
	}
	return nil
}
