// The plots alone: the frame draws them.

export const curve_view = { picks: [] };
