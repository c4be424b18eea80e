// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// A cluster that was never accepted and does not answer costs a look in half a minute.
func TestAClusterThatFailsIsAskedEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.servers["eu"].Inject(regiontest.Fault{Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.start(PeersOptions{})
		w.register("eu")
		pass(time.Hour)
		asked := len(w.servers["eu"].Requests())
		require.Less(t, asked, 200)
		require.Greater(t, asked, 50)
	})
}
