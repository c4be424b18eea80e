// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/atoll-dev/atoll/internal/bubbletest"
)

func TestMain(m *testing.M) { bubbletest.Main(m) }
