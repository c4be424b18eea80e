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

// logs is the default directory of logs. It has one log for each ring, and a common log for rings
// that have no ID yet. The first release used the common log for all rings.
type logs struct{ dir string }

// logs returns the default directory.
func (s *session) logs() (logs, error) {
	state := s.userDir("XDG_STATE_HOME", ".local", "state")
	if state == "" {
		return logs{}, badInput("use --wal FILE", "no place for the log: HOME is not set")
	}
	if !filepath.IsAbs(state) {
		return logs{}, badInput("use --wal FILE", "the place for the log is %q and must be an absolute path", state)
	}
	return logs{filepath.Join(state, "atoll")}, nil
}

// userDir returns the directory that the environment variable names, else the one at the path below the user's home. It
// returns an empty path if HOME is not set either.
func (s *session) userDir(variable string, path ...string) string {
	if dir := s.getenv(variable); dir != "" {
		return dir
	}
	home := s.getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(append([]string{home}, path...)...)
}

func (l logs) common() string { return filepath.Join(l.dir, logName) }

// ringID matches IDs that are safe as the name of a directory. The check is needed because a ring's
// ID is read from a cluster.
var ringID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{0,63}$`)

// of returns the path of a ring's log.
func (l logs) of(ring string) (string, error) {
	switch {
	case ring == "":
		return l.common(), nil
	case !ringID.MatchString(ring):
		return "", badInput("use --wal FILE", "the ring's ID %q names no directory for its log", ring)
	}
	return filepath.Join(l.dir, "rings", ring, logName), nil
}

// existing returns the paths of all logs that were begun: of logs that exist, and of logs whose
// damaged file was set aside.
func (l logs) existing() []string {
	var paths []string
	rings, _ := os.ReadDir(filepath.Join(l.dir, "rings")) // an unreadable directory has no usable log
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

// salvaged returns the path for the log that "wal salvage" makes from a damaged log. It is the path
// that the damaged log had at first, if this path is in the default directory, and otherwise the
// path of the common log.
func (l logs) salvaged(from string) string {
	path, _, ok := strings.Cut(from, ".damaged-")
	if ok && filepath.Base(path) == logName && strings.HasPrefix(path, l.dir+string(filepath.Separator)) {
		return path
	}
	return l.common()
}

// ring reads the ID of the peers' ring. It returns "" if the ring has no ID yet.
func (s *session) ring(ctx context.Context) (id string, err error) {
	if _, err := s.connect(ctx); err != nil {
		return "", err
	}
	err = s.with(noLog{}, func(c *fanout.Coordinator) error {
		id, err = c.Identity().Ring(ctx)
		return err
	})
	if err != nil {
		return "", &unknownRingError{err}
	}
	return id, nil
}

// unknownRingError means that the ring, and so the log to use, could not be read from the peers.
type unknownRingError struct{ err error }

func (e *unknownRingError) Error() string {
	return "the log to use is not known (--wal FILE names one): " + e.err.Error()
}
func (e *unknownRingError) Unwrap() error { return e.err }

// own returns the path of the log of the peers' ring, and whether that log was begun. The common log
// takes the place of the ring's log while only the common log was begun.
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

// found returns the path of the log for commands that need no peer: the log that --wal names.
// Without --wal, it returns the common log if the default directory has no log. Otherwise, if the
// flags name peers that respond within two seconds, it returns the log of the peers' ring.
// Otherwise it returns the only log in the directory. found returns an error if that ring has no
// log, or if it would have to choose among several logs.
func (s *session) found(ctx context.Context) (string, error) {
	if s.wal != "" {
		return s.wal, nil
	}
	place, err := s.logs()
	if err != nil {
		return "", err
	}
	all := place.existing()
	if len(all) == 0 {
		return place.common(), nil
	}
	if s.flagsNamePeers() || s.peersFile() != "" {
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
