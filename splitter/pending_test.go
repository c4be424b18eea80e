// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter"
)

// own returns the number of the splitter's writes since the last Reset, by name, subresource and
// status code.
func (w *world) own() map[string]int {
	own := map[string]int{}
	for _, r := range w.Requests() {
		if r.FieldManager == splitter.Manager {
			own[fmt.Sprintf("%s %s %d", r.Name, r.Subresource, r.Code)]++
		}
	}
	return own
}

// The Splitter does not repeat a write that its cache does not show yet. No write of the Splitter
// fails with a Conflict, since it decides nothing from a stale cache.
func TestNothingIsWrittenFromAnOldCopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newLateWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.rest()
		// Syncers write to the shards as soon as these exist. So the Splitter writes the parent's
		// status, then receives events of the syncers' writes, and only then the event of its own
		// write.
		writeShards := func(note string) {
			for range 20 {
				time.Sleep(50 * time.Millisecond)
				for _, name := range []string{"web--a", "web--b"} {
					if w.get(deployments, name) != nil {
						w.patch(deployments, name, fmt.Sprintf(`{"metadata":{"finalizers":["example.org/syncer"],"labels":{"note":%q}}}`, note))
					}
				}
			}
		}
		w.create(deployments, deployment("web", 4))
		for i := range 5 {
			writeShards(fmt.Sprint(i))
		}
		w.rest()
		require.Equal(t, map[string]int{"web  200": 1, "web--a  201": 1, "web--b  201": 1, "web status 200": 1}, w.own())

		w.Reset()
		w.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		require.Equal(t, map[string]int{"web--a  200": 1, "web--b  200": 1, "web status 200": 1}, w.own())

		// No status report is lost while the Splitter waits for its cache.
		w.Reset()
		for i := range int64(5) {
			w.works("web--a", i)
			w.works("web--b", i)
			time.Sleep(100 * time.Millisecond)
		}
		w.rest()
		require.Equal(t, "8/8", w.ready("web"))
		for what := range w.own() {
			require.NotContains(t, what, fmt.Sprint(http.StatusConflict))
		}
	})
}
