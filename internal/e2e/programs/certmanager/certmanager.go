// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build programs

package certmanager

import _ "github.com/cert-manager/cert-manager/cmd/controller"
