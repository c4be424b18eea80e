// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate
