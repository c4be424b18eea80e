// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/atoll-dev/atoll/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }
