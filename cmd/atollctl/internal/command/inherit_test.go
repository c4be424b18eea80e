// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// state is a default directory of logs, below the directory of a cell.
type state struct {
	*cell
	home string
}

func newState(t *testing.T) state {
	c := newCell(t)
	c.run(t, exitDone, "peer", "init")
	return state{c, filepath.Join(c.dir, "state")}
}

func (s state) common() string { return logs{filepath.Join(s.home, "atoll")}.common() }

// rings returns the paths of the rings' logs.
func (s state) rings(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.home, "atoll", "rings", "*", logName))
	require.NoError(t, err)
	return paths
}

// leave leaves an operation open in the common log, as an earlier release may.
func (s state) leave(t *testing.T) {
	t.Helper()
	s.log = s.common()
	s.run(t, exitDone, "account", "update", "-f", "account.yaml")
	s.servers[1].Partition(true)
	s.run(t, exitDone, "account", "update", "-f", "updated.yaml")
	s.servers[1].Partition(false)
	require.NoError(t, os.Remove(s.common()+".lock"))
}

// inPlace runs a command with the log in the default directory.
func (s state) inPlace(t *testing.T, args ...string) (code int, errOut string) {
	t.Helper()
	var out, text bytes.Buffer
	getenv := func(name string) string { return map[string]string{"XDG_STATE_HOME": s.home}[name] }
	run := &session{in: strings.NewReader(""), out: &out, errOut: &text, getenv: getenv, now: time.Now, cleanup: time.Second, lease: 2 * time.Second}
	return run.execute(t.Context(), slices.Concat([]string{"atollctl"}, args, s.flags)), text.String()
}

// forgetRing replaces the PeerSet of each server by a PeerSet without the ring's ID, as the first
// release writes it.
func (s state) forgetRing(t *testing.T) {
	t.Helper()
	const all = "apis/fanout.atoll.dev/v1alpha1/peersets"
	for _, server := range s.servers {
		server.grant("delete", schema.GroupResource{Group: "fanout.atoll.dev", Resource: "peersets"})
		text, code := server.send(http.MethodGet, all+"/"+v1alpha1.PeerSetName, "")
		require.Equal(t, http.StatusOK, code)
		var set unstructured.Unstructured
		require.NoError(t, set.UnmarshalJSON(text))
		unstructured.RemoveNestedField(set.Object, "spec", "ring")
		set.SetResourceVersion("")
		set.SetUID("")
		text, err := set.MarshalJSON()
		require.NoError(t, err)
		_, code = server.send(http.MethodDelete, all+"/"+v1alpha1.PeerSetName, "")
		require.Equal(t, http.StatusOK, code)
		_, code = server.send(http.MethodPost, all, string(text))
		require.Equal(t, http.StatusCreated, code)
	}
}

// makeID sweeps the ring. The sweep gives the ring an ID.
func (s state) makeID(t *testing.T) {
	t.Helper()
	sweeper := &session{kubeconfigs: slices.DeleteFunc(slices.Clone(s.flags), func(arg string) bool { return arg == "--kubeconfig" }), errOut: &bytes.Buffer{}}
	_, err := sweeper.connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, sweeper.with(noLog{}, func(c *fanout.Coordinator) error {
		_, err := c.Sweep(t.Context())
		return err
	}))
}

// ringIDs returns the ring ID in the PeerSet of each server.
func (s state) ringIDs(t *testing.T) (ids []string) {
	t.Helper()
	for _, server := range s.servers {
		text, code := server.send(http.MethodGet, "apis/fanout.atoll.dev/v1alpha1/peersets/"+v1alpha1.PeerSetName, "")
		require.Equal(t, http.StatusOK, code)
		var set unstructured.Unstructured
		require.NoError(t, set.UnmarshalJSON(text))
		id, _, err := unstructured.NestedString(set.Object, "spec", "ring")
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

// settled requires that the ring has one log, that no log has an open operation, and that an audit
// finds no violation.
func (s state) settled(t *testing.T) {
	t.Helper()
	require.Len(t, s.rings(t), 1)
	for _, path := range slices.Concat(s.rings(t), []string{s.common()}) {
		if exists(path) {
			s.log = path
			s.run(t, exitDone, "wal", "list")
			require.Contains(t, s.errOut.String(), "no open operations", path)
			s.run(t, exitDone, "wal", "verify")
		}
	}
	s.run(t, exitDone, "audit")
}

// Several runs of a command find the common log at once. One run moves the log to the path of the
// ring's log, and no run creates another log.
func TestCommonLogMetAtOnce(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.run(t, exitDone, "account", "add", "-f", "account.yaml")
	s.leave(t)
	var wg sync.WaitGroup
	codes, texts := make([]int, 4), make([]string, 4)
	for i := range codes {
		wg.Go(func() { codes[i], texts[i] = s.inPlace(t, "wal", "recover") })
	}
	wg.Wait()
	for i, code := range codes {
		if code != exitDone { // the run may have timed out while another run held the log
			require.Equal(t, exitInput, code, texts[i])
			require.Contains(t, texts[i], "in use by process")
		}
	}
	require.Contains(t, codes, exitDone)
	require.NoFileExists(t, s.common())
	require.Equal(t, 1, strings.Count(strings.Join(texts, "\n"), " is now "), texts)
	s.settled(t)
}

// The test kills "wal recover" after each of its requests to the first server. If the ring has no
// log of its own, exactly one log exists afterwards: the common log, or the ring's log. If the ring
// has a log of its own, that log and the common log exist afterwards. In both cases the next
// command settles the operation.
func TestKilledWithTheCommonLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process for each request of a command")
	}
	s := newState(t)
	s.run(t, exitDone, "account", "add", "-f", "account.yaml")
	s.leave(t)
	left, err := os.ReadFile(s.common())
	require.NoError(t, err)
	for _, moves := range []bool{true, false} {
		for n := 1; ; n++ {
			require.Less(t, n, 60, "the command never ends")
			if moves {
				require.NoError(t, os.RemoveAll(s.home))
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(s.common()), 0o700))
			require.NoError(t, writeFile(s.common(), left))
			child := exec.CommandContext(t.Context(), os.Args[0], slices.Concat([]string{"wal", "recover"}, s.flags)...)
			child.Env = append(os.Environ(), childEnv+"=1", "XDG_STATE_HOME="+s.home)
			k := &killer{process: child, ended: make(chan struct{})}
			s.servers[0].Inject(regiontest.Fault{Skip: n - 1, Do: regiontest.CrashAfter(k.kill)})
			err := k.run()
			s.rest(t)
			s.servers[0].Reset()
			if !k.struck {
				require.NoError(t, err)
				require.Greater(t, n, 3, "the command was never killed")
				break
			}
			require.Equal(t, 1, len(s.rings(t))+count(exists(s.common()))-count(!moves), "one log, and the one that was there")
			code, text := s.inPlace(t, "wal", "recover")
			require.Equal(t, exitDone, code, text)
			require.Equal(t, !moves, exists(s.common()))
			s.settled(t)
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// A command in a ring without an ID uses the common log. After the ring has got an ID, the next
// command makes the common log the ring's log.
func TestRingWithoutID(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.forgetRing(t)
	code, text := s.inPlace(t, "account", "add", "-f", filepath.Join(s.dir, "account.yaml"), "--idempotency-key", "key")
	require.Equal(t, exitDone, code, text)
	require.FileExists(t, s.common())
	require.Empty(t, s.rings(t))
	s.makeID(t)
	code, text = s.inPlace(t, "account", "add", "-f", filepath.Join(s.dir, "account.yaml"), "--idempotency-key", "key")
	require.Equal(t, exitDone, code, text)
	require.NoFileExists(t, s.common())
	require.Len(t, s.rings(t), 1)
}

// If the ID of a ring was lost and the ring gets another ID, the ring keeps its log. The log of
// another ring stays where it is.
func TestRingWithAnotherID(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.run(t, exitDone, "account", "add", "-f", "account.yaml")
	s.leave(t)
	place := logs{filepath.Dir(s.common())}
	ids := s.ringIDs(t)
	path, err := place.of(ids[0])
	require.NoError(t, err)
	another, err := place.of("another")
	require.NoError(t, err)
	for _, at := range []string{path, another} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
	}
	left, err := os.ReadFile(s.common())
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.common(), path))
	require.NoError(t, writeFile(another, left)) // its operation began in the ring ids[0], not in "another"
	s.forgetRing(t)
	s.makeID(t)
	require.NotEqual(t, ids, s.ringIDs(t))

	code, text := s.inPlace(t, "wal", "recover")
	require.Equal(t, exitDone, code, text)
	require.Contains(t, text, "the log "+path+", whose ring has another ID by now, is now ")
	require.NoFileExists(t, path)
	require.FileExists(t, another)
	renamed, err := place.of(s.ringIDs(t)[0])
	require.NoError(t, err)
	require.ElementsMatch(t, []string{renamed, another}, s.rings(t))
	s.log = renamed
	s.run(t, exitDone, "wal", "list")
	require.Contains(t, s.errOut.String(), "no open operations")
}

// If the path of the common log is a link, a command uses the log and does not move it.
func TestLinkedCommonLog(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.run(t, exitDone, "account", "add", "-f", "account.yaml")
	s.leave(t)
	elsewhere := filepath.Join(s.dir, "elsewhere.db")
	require.NoError(t, os.Rename(s.common(), elsewhere))
	require.NoError(t, os.Symlink(elsewhere, s.common()))
	code, text := s.inPlace(t, "wal", "recover")
	require.Equal(t, exitDone, code, text)
	require.FileExists(t, elsewhere)
	require.Empty(t, s.rings(t))
}

// A ring's ID is read from a cluster, so it must never name a path outside the default directory.
func TestRingNamesAPath(t *testing.T) {
	t.Parallel()
	place := logs{"/state/atoll"}
	for _, ring := range []string{"..", ".", "../x", "a/b", "a\\b", " ", "-", strings.Repeat("a", 65), "a\x00"} {
		_, err := place.of(ring)
		require.ErrorContains(t, err, "names no directory", "%q", ring)
	}
	path, err := place.of("0a1b")
	require.NoError(t, err)
	require.Equal(t, "/state/atoll/rings/0a1b/operations.db", path)
	path, err = place.of("")
	require.NoError(t, err)
	require.Equal(t, place.common(), path)

	require.Equal(t, path, place.salvaged("/elsewhere/operations.db.damaged-1"))
	require.Equal(t, path, place.salvaged("/state/atoll/operations.db.damaged-1"))
	require.Equal(t, "/state/atoll/rings/0a1b/operations.db", place.salvaged("/state/atoll/rings/0a1b/operations.db.damaged-20260101T000000Z-1"))
}
