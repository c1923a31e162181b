// The texts of a page whose contrast to their background is too low: below 4.5, or below 3 for large text (WCAG 2.2,
// 1.4.3). The value is a list of lines, empty for a page that is fine.
(() => {
	const parse = text => {
		let [r, g, b, a = 1] = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
		if (text.startsWith("color(srgb ")) [r, g, b] = [r * 255, g * 255, b * 255];
		return text === "none" || text === "transparent" ? [0, 0, 0, 0] : [r, g, b, a];
	};
	const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a)).concat(1);
	const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
	const ratio = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	const opacity = (element, root) => {
		let all = 1;
		for (let e = element; e && e !== root; e = e.parentElement) all *= +getComputedStyle(e).opacity;
		return all;
	};
	const paper = element => {
		const layers = [];
		for (let e = element; e; e = e.parentElement) {
			const layer = parse(getComputedStyle(e).backgroundColor);
			layers.push(layer);
			if (layer[3] === 1) break;
		}
		return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255, 1]);
	};
	// painted returns the colour under the middle of a text in a picture: of the shapes that were drawn before it.
	const painted = (text, box) => {
		const svg = text.ownerSVGElement, style = getComputedStyle(text);
		if (style.paintOrder.startsWith("stroke") && parseFloat(style.strokeWidth) >= 2) return parse(style.stroke);
		let root = svg;
		while (root.ownerSVGElement) root = root.ownerSVGElement;
		let colour = paper(root.parentElement);
		for (const shape of root.querySelectorAll("rect, path, circle")) {
			if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
			const fill = parse(getComputedStyle(shape).fill);
			if (fill[3] === 0 || !shape.getScreenCTM()) continue;
			const at = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2).matrixTransform(shape.getScreenCTM().inverse());
			if (shape.isPointInFill(at)) colour = over([...fill.slice(0, 3), fill[3] * opacity(shape, root)], colour);
		}
		return colour;
	};
	const bad = new Set();
	let texts = 0;
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const e = node.parentElement, inPicture = e instanceof SVGElement;
		if (!node.data.trim() || e.closest("script, style, title, noscript") || inPicture && e.tagName !== "text") continue;
		if (!e.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		const box = range.getBoundingClientRect();
		if (box.width < 1 || box.height < 1 || e.closest(".hidden, .skip")) continue;
		texts++;
		const style = getComputedStyle(e), ink = parse(inPicture ? style.fill : style.color);
		const size = parseFloat(style.fontSize) * (inPicture ? e.getScreenCTM().a : 1);
		const large = size >= 24 || size >= 18.66 && +style.fontWeight >= 700;
		const under = inPicture ? painted(e, box) : paper(e);
		const got = ratio(over([...ink.slice(0, 3), ink[3] * opacity(e, null)], under), under);
		if (got < (large ? 3 : 4.5)) bad.add(`${got.toFixed(2)} ${JSON.stringify(node.data.trim().slice(0, 40))} of <${e.tagName} class=${JSON.stringify(e.getAttribute("class"))}>`);
	}
	if (texts < 10) bad.add(`only ${texts} texts were found`);
	return [...bad].join("\n");
})()
