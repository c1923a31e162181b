// Quantities as the rest of fullpipe prints them.

export function rate(v) { // bit/s
	const prefixes = ["", "k", "M", "G", "T"];
	let i = 0;
	while (Math.abs(v) >= 999.5 && i < prefixes.length - 1) { v /= 1000; i++; }
	return `${+v.toPrecision(3)} ${prefixes[i]}bit/s`;
}

export const trip = v => v < 0.0995 ? `${+(v * 1e3).toPrecision(3)} ms` : `${+v.toPrecision(3)} s`; // seconds
