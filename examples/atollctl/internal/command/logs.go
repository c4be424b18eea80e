// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/fanout"
)

const logName = "operations.db"

// logs are the logs in the default place: one for each ring, and a common one. That is of
// rings that have no ID yet; the first release used it for all rings.
type logs struct{ dir string }

// logs returns the default place.
func (s *session) logs() (logs, error) {
	state := s.getenv("XDG_STATE_HOME")
	if state == "" {
		home := s.getenv("HOME")
		if home == "" {
			return logs{}, badInput("use --wal FILE", "no place for the log: HOME is not set")
		}
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return logs{}, badInput("use --wal FILE", "the place for the log is %q and must be an absolute path", state)
	}
	return logs{filepath.Join(state, "atoll")}, nil
}

func (l logs) common() string { return filepath.Join(l.dir, logName) }

// ringID is what a ring's ID must be to name a directory: it is read from a cluster.
var ringID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{0,63}$`)

// of is the path of a ring's log.
func (l logs) of(ring string) (string, error) {
	switch {
	case ring == "":
		return l.common(), nil
	case !ringID.MatchString(ring):
		return "", badInput("use --wal FILE", "the ring's ID %q names no directory for its log", ring)
	}
	return filepath.Join(l.dir, "rings", ring, logName), nil
}

// begun are the paths of all logs that are there.
func (l logs) begun() []string {
	var paths []string
	rings, _ := os.ReadDir(filepath.Join(l.dir, "rings")) // what cannot be read holds no log that could be
	for _, r := range rings {
		if path, err := l.of(r.Name()); err == nil && begun(path) {
			paths = append(paths, path)
		}
	}
	if begun(l.common()) {
		paths = append(paths, l.common())
	}
	return paths
}

// salvaged is where a log goes that is made of a damaged one: in place of that, if it was set
// aside in the default place.
func (l logs) salvaged(from string) string {
	path, _, ok := strings.Cut(from, ".damaged-")
	if ok && filepath.Base(path) == logName && strings.HasPrefix(path, l.dir+string(filepath.Separator)) {
		return path
	}
	return l.common()
}

// ring asks the peers for the ID of their ring; "" if they have none yet.
func (s *session) ring(ctx context.Context) (id string, err error) {
	if _, err := s.connect(ctx); err != nil {
		return "", err
	}
	err = s.with(noLog{}, func(c *fanout.Coordinator) error {
		id, err = c.Ring(ctx)
		return err
	})
	if err != nil {
		return "", &unknownRingError{err}
	}
	return id, nil
}

// unknownRingError says that the peers do not show whose log is to be used.
type unknownRingError struct{ err error }

func (e *unknownRingError) Error() string {
	return "the log to use is not known (--wal FILE names one): " + e.err.Error()
}
func (e *unknownRingError) Unwrap() error { return e.err }

// own is the log of the ring of the peers, and whether there is one: the common one counts as
// long as the ring has none.
func (s *session) own(ctx context.Context, place logs) (path string, found bool, err error) {
	ring, err := s.ring(ctx)
	if err != nil {
		return "", false, err
	}
	if path, err = place.of(ring); err != nil {
		return "", false, err
	}
	if !begun(path) && begun(place.common()) {
		return place.common(), true, nil
	}
	return path, begun(path), nil
}

// found chooses the log of commands that need no peer: the one that --wal names, that of the
// ring of the peers if they are named and answer soon, or the only one.
func (s *session) found(ctx context.Context) (string, error) {
	if s.wal != "" {
		return s.wal, nil
	}
	place, err := s.logs()
	if err != nil {
		return "", err
	}
	all := place.begun()
	if len(all) == 0 {
		return place.common(), nil
	}
	if s.config != "" || len(s.kubeconfigs) > 0 {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		path, found, err := s.own(ctx, place)
		switch {
		case err == nil && found:
			return path, nil
		case err == nil:
			return "", badInput("name one with --wal", "there is no log %s; there are logs of other rings: %s", path, strings.Join(all, ", "))
		}
	}
	if len(all) > 1 {
		return "", badInput("name one with --wal", "there is more than one log: %s", strings.Join(all, ", "))
	}
	return all[0], nil
}
